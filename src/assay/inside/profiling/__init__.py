"""Where the time of a call goes: timelines by torch's profiler, counters by ncu, and nsys."""

RANGE = "assay: one call"
"""The range in which each call of a recording lies."""
