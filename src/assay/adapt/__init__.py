"""Kernels that nobody wrote for Assay: a bare function, a KernelBench pair, an autotuned kernel."""
