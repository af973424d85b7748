"""Kernel + Case -> Verdict.

candidate.py runs the kernel in its own process on poisoned, fenced buffers and ships every byte;
oracle.py, in another process, knows the truth in float64 and judges the bytes. (The folder is not
called `check`: a subpackage of that name would hide the function `assay.check`.)
"""
