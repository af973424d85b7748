"""Seeing inside a kernel: what compilers made of it, how it is launched, where its time goes."""
