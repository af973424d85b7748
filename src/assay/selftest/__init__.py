"""Assay tested on itself: kernels of which everybody knows what must be said of them."""
