"""When and how often a call is tried again: on UNAVAILABLE alone, with exponential back-off, inside its deadline."""

from __future__ import annotations

import random
from dataclasses import dataclass

from attune.arguments import is_number
from attune.clock import Clock
from attune.errors import AttuneError, InvalidArgument


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    attempts: int = 4  # the first one included; 1 is no retry
    initial_wait: float = 0.05  # seconds
    multiplier: float = 2.0
    longest_wait: float = 2.0  # seconds
    # Each wait is spread evenly over [1 - jitter, 1 + jitter] of itself, so that clients do not come back in step.
    jitter: float = 0.2

    def __post_init__(self) -> None:
        """InvalidArgument names the field, its value and what is allowed."""
        for name, least in (("attempts", 1), ("initial_wait", 0), ("multiplier", 1), ("longest_wait", 0)):
            if not is_number(getattr(self, name)) or getattr(self, name) < least:
                raise InvalidArgument(f"{name} is {getattr(self, name)!r}; it must be a number, at least {least}")
        if not is_number(self.jitter) or not 0 <= self.jitter <= 1:
            raise InvalidArgument(f"jitter is {self.jitter!r}; it must be 0 to 1")


class Backoff:
    """The waits between attempts, in seconds, one after the other. Not thread-safe."""

    def __init__(self, policy: RetryPolicy) -> None:
        self._policy = policy
        self._wait = policy.initial_wait

    def next(self) -> float:
        wait = min(self._wait, self._policy.longest_wait)
        self._wait = min(self._wait * self._policy.multiplier, self._policy.longest_wait)
        return wait * random.uniform(1 - self._policy.jitter, 1 + self._policy.jitter)

    def reset(self) -> None:
        """The next wait is the first again."""
        self._wait = self._policy.initial_wait


class Attempts:
    """Of one call, all of them together within `deadline` seconds from now."""

    def __init__(self, policy: RetryPolicy, clock: Clock, deadline: float) -> None:
        self._policy = policy
        self._clock = clock
        self._backoff = Backoff(policy)
        self._give_up = clock.now() + deadline
        self._made = 0
        self._refusal: AttuneError | None = None  # of the last attempt

    def time_left(self) -> float:
        """Seconds until the deadline, at least 0."""
        return max(self._give_up - self._clock.now(), 0.0)

    def wait_after(self, error: AttuneError) -> float:
        """Seconds to wait before the next attempt; raises `error` when there is none, or what the attempt before said,
        where this one only had no time left."""
        self._made += 1
        if error.code == "DEADLINE_EXCEEDED" and self._refusal is not None:
            raise self._refusal from error
        if error.code != "UNAVAILABLE" or self._made >= self._policy.attempts:
            raise error
        wait = self._backoff.next()
        if wait >= self.time_left():
            raise error
        self._refusal = error
        return wait
