"""Progress on stderr: what is done, how long it took, and when the rest will be."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TextIO


class Progress:
    """Counts the steps of a phase and extrapolates their mean."""

    def __init__(self, phase: str, total: int, clock: Callable[[], float], stream: TextIO | None = None) -> None:
        """`clock` gives seconds. Without a stream: stderr."""
        self._phase, self._total, self._clock, self._stream = phase, total, clock, stream or sys.stderr
        self._start = clock()
        self._done = 0

    def step(self, what: str) -> None:
        """One more is done."""
        self._done += 1
        elapsed = self._clock() - self._start
        left = elapsed / self._done * (self._total - self._done)
        print(
            f"{self._phase} {self._done}/{self._total}  {what}  ({elapsed:.0f} s, about {left:.0f} s to go)",
            file=self._stream,
            flush=True,
        )


def say(what: str) -> None:
    """A line that is no step."""
    print(what, file=sys.stderr, flush=True)
