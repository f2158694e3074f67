"""How what is served has done since it was promoted, and how times compare."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from attune.values.answer import Retiming
from attune.values.convert import Value, reads
from attune.values.enums import Comparison, Policy, TrendState
from attune.values.trial import Timing


@dataclass(frozen=True, slots=True)
class DependencyChange(Value):
    """One dependency that is not what it was."""

    what: str  # "driver", "toolchain", "source", "card", "variant"
    before: str = field(metadata=reads(lambda message: getattr(message, "from")))  # a word of the language
    to: str


@dataclass(frozen=True, slots=True)
class TrendPoint(Value):
    """A span of time of a curve."""

    time: datetime | None  # of the median one
    median_us: float
    low_us: float  # the lowest of the span
    high_us: float  # the highest
    count: int  # of re-timings


@dataclass(frozen=True, slots=True)
class Trend(Value):
    """What the re-timings of a problem that is served say against the fastest that it was ever served with."""

    problem_text: str
    device_class: str  # Device.fingerprint
    class_alias: str  # empty when no device of the class is on the server's host
    policy: Policy
    state: TrendState
    incumbent: str  # "incumbents/45", served
    variant: str  # its text
    pinned: bool
    device_id: str  # of the card that timed it
    device_uuid: str
    served: Timing | None
    promote_time: datetime | None
    reference: Timing | None  # the fastest that the problem was served with on that card
    reference_time: datetime | None
    reference_variant: str
    latest: Timing | None  # of the night that `state` is of
    latest_time: datetime | None
    latest_device_id: str
    latest_job: str
    change: float  # latest over reference, less 1: 0.04 is 4 % slower
    since: datetime | None  # the night from which on most have this state
    nights: int  # with this state since then
    changes: tuple[DependencyChange, ...]  # from the last night that said otherwise, or the reference, to `since`
    unsettled_nights: int  # after the last that settled
    points: tuple[TrendPoint, ...]  # oldest first
    flops: float
    bytes: float


@dataclass(frozen=True, slots=True)
class ComparedRow(Value):
    """Two times of one problem."""

    problem: str
    comparison: Comparison
    before: Retiming | None = field(
        metadata=reads(
            lambda message: Retiming.from_message(getattr(message, "from")) if message.HasField("from") else None
        )
    )
    to: Retiming | None
    speedup: float  # the time of `before` over that of `to`; 0 where one is missing


@dataclass(frozen=True, slots=True)
class ComparedTimes(Value):
    """Times of two selections, problem by problem: those that differ most first."""

    rows: tuple[ComparedRow, ...]
    geometric_mean: float  # of all speed-ups; 0 where there is none
