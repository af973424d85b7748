"""Where the time of a call goes: timelines by torch's profiler, counters by ncu, and nsys."""
