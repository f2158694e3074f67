"""Entries whose code the service compiles. Each is asked for again when the service says that its code is there and,
should it never say so, when that is due."""

from __future__ import annotations

import heapq
import itertools
import math
from collections import deque
from collections.abc import Callable

from attune.background.entry import Entry
from attune.problem import Problem

_MOST_AWAITED = 64  # at once; other code is only asked for again


class Compiling:
    """For the background thread."""

    def __init__(
        self, when_compiled: Callable[[Problem, int, Callable[[bool], None]], None], spoken: Callable[[], object]
    ) -> None:
        """`when_compiled` is Service's; `spoken` is called in another thread once there is an entry to take."""
        self._when_compiled = when_compiled
        self._spoken = spoken
        self._due: list[tuple[float, int, Entry]] = []  # a heap, by when to ask for it again
        self._added = itertools.count()  # orders what is due at the same time
        self._awaited: set[int] = set()  # ids of entries whose code the service is to speak of
        self._there: deque[Entry] = deque()  # those that it spoke of

    def add(self, entry: Entry, due: float) -> None:
        """`entry` is to be asked for again at `due` (time.monotonic) or before."""
        heapq.heappush(self._due, (due, next(self._added), entry))
        if entry.key is None or id(entry) in self._awaited or len(self._awaited) >= _MOST_AWAITED:
            return

        def done(answered: bool) -> None:
            self._awaited.discard(id(entry))
            if answered:
                self._there.append(entry)
                self._spoken()

        self._awaited.add(id(entry))
        self._when_compiled(*entry.key, done)

    def next_at(self) -> float:
        """When the next one is due."""
        return self._due[0][0] if self._due else math.inf

    def take(self, now: float) -> Entry | None:
        """One that is to be asked for now."""
        if self._there:
            entry = self._there.popleft()
            self._due = [one for one in self._due if one[2] is not entry]
            heapq.heapify(self._due)
            return entry
        return heapq.heappop(self._due)[2] if now >= self.next_at() else None
