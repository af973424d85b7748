"""Helpers of simt_counts.py and simt_sanitizer.py: building, launching and profiling on a card."""
