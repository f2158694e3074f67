"""How many copies of the inputs the timed runs go through, by the daemon's rule for HOT timing
(server/verify/prepared/timing_sets.cc), held to it by tests/golden/rotation.json."""

from __future__ import annotations

MOST_SETS = 8


def set_count(set_bytes: int, l2_bytes: int, memory_bytes: int) -> int:
    """The fewest sets that exceed twice the L2 or a quarter of the device's memory, at most MOST_SETS.

    Args are bytes: of one problem's tensors, of the L2, of the device's memory (0: not known).
    """
    sets = 1
    while sets < MOST_SETS and sets * set_bytes <= 2 * l2_bytes:
        if memory_bytes and 4 * sets * set_bytes > memory_bytes:
            break
        sets += 1
    return sets
