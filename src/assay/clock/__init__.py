"""[Kernel] + Case -> [Timing]: all kernels of one schedule in one process, sampled round robin.

timing.py is that process; cpu.py and events.py each take one sample; statistics.py turns samples
into a median, an interval and a ratio; plausible.py refuses what can't be.
"""
