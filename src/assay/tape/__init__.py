"""A tiny autograd: a tape of scalars to read, and one of tensors over the library's own kernels.

`scalar.py` is all of backpropagation in a page; `tensor.py` does the same with `assay.ops`, on a
GPU with our kernels forward and backward; `network.py` has neurons, layers and losses for both. The
scalar tape is the oracle of the tensor tape, and torch that of both (tests/test_tape.py).
"""
