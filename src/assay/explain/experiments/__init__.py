"""Experiments that try an explanation: a kernel changed on purpose, timed beside itself."""
