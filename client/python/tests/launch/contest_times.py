"""What contests of these tests are about, and the times that a service has recorded of it."""

from __future__ import annotations

import dataclasses
import datetime

from attune.background.contest import PAIRS, WARM_UP
from attune.problem import Problem
from attune.values import Baseline, Policy, Timing

STREAM = 5
CALLS = WARM_UP + 2 * PAIRS  # of a contest
PROBLEM = Problem.parse("b1.h2.q16.d64.f16")


def timing(median_us: float) -> Timing:
    return Timing(median_us, median_us, median_us, median_us, 30, 0, True, False, 0, 0.0, 0, 0, False, 0, ())


def baseline(contender: str, median_us: float, note: str = "", minute: int = 0, **fields: object) -> Baseline:
    when = datetime.datetime(2026, 1, 1, 0, minute, tzinfo=datetime.timezone.utc)
    made = Baseline(PROBLEM, "cuda:0", Policy.HOT, contender, median_us, median_us, median_us, when, note)
    return dataclasses.replace(made, **fields)
