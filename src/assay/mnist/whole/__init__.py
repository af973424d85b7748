"""Whole training steps on a GPU, several in one CUDA graph, and who takes how long for one."""
