"""Back-off."""

from __future__ import annotations

import math

import pytest

from attune.errors import InvalidArgument, Unreachable, make
from attune.retry import Attempts, Backoff, RetryPolicy


def test_waits_grow_up_to_the_longest():
    backoff = Backoff(RetryPolicy(initial_wait=1, multiplier=3, longest_wait=5, jitter=0))
    assert [backoff.next() for _ in range(4)] == [1, 3, 5, 5]


def test_a_reset_begins_again():
    backoff = Backoff(RetryPolicy(initial_wait=1, jitter=0))
    backoff.next()
    backoff.next()
    backoff.reset()
    assert backoff.next() == 1


def test_waits_are_spread_so_that_clients_do_not_come_back_in_step():
    waits = [Backoff(RetryPolicy(initial_wait=1, jitter=0.2)).next() for _ in range(200)]
    assert 0.8 <= min(waits) < 0.95 < 1.05 < max(waits) <= 1.2


class Stopped:
    def now(self):
        return 100.0


def test_that_time_was_up_says_less_than_what_was_answered_before():
    attempts = Attempts(RetryPolicy(), Stopped(), 10)
    refusal, late = make("UNAVAILABLE", "the database is away"), make("DEADLINE_EXCEEDED", "")
    attempts.wait_after(refusal)
    with pytest.raises(Unreachable) as raised:
        attempts.wait_after(late)
    assert raised.value is refusal


@pytest.mark.parametrize(
    ("field", "value", "allowed"),
    [
        ("attempts", 0, "a number, at least 1"),
        ("initial_wait", -1, "a number, at least 0"),
        ("multiplier", 0.5, "a number, at least 1"),
        ("longest_wait", math.nan, "a number, at least 0"),
        ("jitter", 1.5, "0 to 1"),
    ],
)
def test_a_policy_that_cannot_be_is_refused(field, value, allowed):
    with pytest.raises(InvalidArgument, match=f"^{field} is {value}; it must be {allowed}$"):
        RetryPolicy(**{field: value})
