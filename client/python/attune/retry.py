"""When and how often a call is tried again: on UNAVAILABLE alone, with exponential back-off, inside its deadline."""

from __future__ import annotations

import random
from dataclasses import dataclass

from attune.errors import AttuneError


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    attempts: int = 4  # the first one included; 1 is no retry
    initial_wait: float = 0.05  # seconds
    multiplier: float = 2.0
    longest_wait: float = 2.0  # seconds
    # Each wait is spread evenly over [1 - jitter, 1 + jitter] of itself, so that clients do not come back in step.
    jitter: float = 0.2


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
    """Of one call: `wait_after` says how long to wait before the next, or raises the error that ends them."""

    def __init__(self, policy: RetryPolicy, give_up: float) -> None:
        self._policy = policy
        self._backoff = Backoff(policy)
        self._give_up = give_up
        self._made = 0

    def wait_after(self, error: AttuneError, now: float) -> float:
        """Seconds. `now` and `give_up` are of the same clock."""
        self._made += 1
        if error.code != "UNAVAILABLE" or self._made >= self._policy.attempts:
            raise error
        wait = self._backoff.next()
        if now + wait >= self._give_up:
            raise error
        return wait
