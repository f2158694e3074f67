"""How many copies of the inputs the timed runs go through, by the daemon's rule for HOT timing."""

from __future__ import annotations

MOST_SETS = 8
MEMORY_SHARE = 0.25


def set_count(set_bytes: int, l2_bytes: int, memory_bytes: int) -> int:
    """As many sets as exceed twice the L2, at most MOST_SETS and at most a quarter of the memory; at least one.

    Args are bytes: of one problem's Q, K, V and O, of the L2, of the device's memory.
    """
    past_l2 = 2 * l2_bytes // set_bytes + 1
    fitting = int(MEMORY_SHARE * memory_bytes) // set_bytes
    return max(1, min(past_l2, MOST_SETS, fitting))
