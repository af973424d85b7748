"""Children: every kernel runs in one, under a deadline, and nothing it starts outlives it.

server.py is the process that forks them (it has imported torch, never a user's file, never CUDA);
child.py is the parent's end.
"""

from .child import PRELOAD, Child, Ended, ForkServer, Status, TimedOut

__all__ = ["PRELOAD", "Child", "Ended", "ForkServer", "Status", "TimedOut"]
