"""The network's whole training step in seven CUDA kernels of its own, on tensor cores."""
