"""Seeing inside a kernel: what its compilers made of it, its launch, what profilers recorded."""
