"""Why a kernel is as fast as it is, and what would make it faster: findings with their evidence."""

from .model import Explanation, Facts, Finding, Launch
from .rank import explain

__all__ = ["Explanation", "Facts", "Finding", "Launch", "explain"]
