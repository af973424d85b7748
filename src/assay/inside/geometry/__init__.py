"""Launch geometry without a GPU: totals, occupancy and its limiter, waves, what would lift it."""

from .lifts import Lift, best_block, lifts
from .limits import MULTIPROCESSORS, Multiprocessor, multiprocessor
from .model import Geometry, geometry
from .occupancy import MOST, PREDICTED, Footprint, Occupancy, occupancy
from .text import lines
from .waves import Waves

__all__ = [
    "MOST",
    "MULTIPROCESSORS",
    "PREDICTED",
    "Footprint",
    "Geometry",
    "Lift",
    "Multiprocessor",
    "Occupancy",
    "Waves",
    "best_block",
    "geometry",
    "lifts",
    "lines",
    "multiprocessor",
    "occupancy",
]
