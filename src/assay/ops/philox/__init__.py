"""philox: y[i] uniform between two bounds, from a seed and an offset: the same on every machine.

Philox-4x32-10 (Salmon, Moraes, Dror and Shaw, 2011) scrambles a counter of 128 bits with a key of
64 by ten rounds of two multiplications. There is no state: thread t takes the counter offset + t
and gets four numbers of 32 bits, so any thread can make any number, in any order. The upper 24 bits
of each, times 2^-24, are what float32 can hold evenly: u in [0, 1), and y = low + u (high - low).

state is (seed, offset), two int64 in memory, so that a captured graph draws anew when they change.
Element 4 t + j is the j-th number of counter offset + t. The reference does the same in integers of
64 bits, so that there is one right answer, and no need to accept any that looks random.
"""

import torch

from assay.op import Op

from ..launching import blocks

M0, M1 = 0xD2511F53, 0xCD9E8D57
W0, W1 = 0x9E3779B9, 0xBB67AE85
ROUNDS = 10
LOW = 0xFFFFFFFF


def product(a, b):
    """High and low 32 bits of a * b, both below 2^32: in halves, for int64 ends at 2^63."""
    low, high = (b & 0xFFFF) * a, (b >> 16) * a
    middle = high + (low >> 16)
    return middle >> 16, ((middle & 0xFFFF) << 16) | (low & 0xFFFF)


def reference(bounds, state, n):
    counter = state[1] + torch.arange((n + 3) // 4, device=state.device)
    c0, c1 = counter & LOW, (counter >> 32) & LOW
    c2 = c3 = torch.zeros_like(counter)
    k0, k1 = state[0] & LOW, (state[0] >> 32) & LOW
    for _ in range(ROUNDS):
        high0, low0 = product(M0, c0)
        high1, low1 = product(M1, c2)
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0, k1 = (k0 + W0) & LOW, (k1 + W1) & LOW
    bits = torch.stack((c0, c1, c2, c3), -1).reshape(-1)[:n]
    low, high = bounds[0], bounds[1]
    return (bits >> 8) * (high - low) * 2.0**-24 + low


def inputs(make, n):
    bounds = make.uniform(2, low=-1, high=1)
    return bounds, make.integers(2, low=0, high=2**40), n


philox: Op = Op(
    "philox",
    reference,
    inputs,
    # for four numbers ten rounds of two products (the two halves of one counted once), four xors
    # and two additions; then a shift, two products and a sum for each
    flops=lambda n: 24 * n,
    bytes=lambda n: 4 * n + 24,
    outputs=lambda n: [((n,), "float32")],
    deterministic=True,
    cases=[dict(n=1), dict(n=1000), dict(n=10_007), dict(n=1 << 24)],
)


@philox.launcher("cuda", source="philox.cu")
def by_cuda(k, y, bounds, state, n):
    if n:
        k["philox_uniform"](grid=blocks(n, 4 * 256), block=256, shared=0)(y, bounds, state, n)


@philox.launcher("triton", knobs={"BLOCK": [512]})
def by_triton(y, bounds, state, n, BLOCK):
    from .philox_triton import kernel

    if n:
        kernel[(blocks(n, 4 * BLOCK),)](y, bounds, state, n, BLOCK)
