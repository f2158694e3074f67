"""A run's results as plain values: one Header, then one Row a problem, each holding one Result a contestant."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass, field

from attune_bench.statistics import Interval

OURS = "attune"
OURS_16 = "attune16"  # the same with K and V of 16 bits, where a problem has them of 8
TORCH = "sdpa"  # what PyTorch picks by itself
FLASH = "flash"
FLASH4 = "flash4"  # FlashAttention 4, where it is installed


class Status(enum.Enum):
    """How a contestant fared on a problem."""

    RIGHT = "right"  # checked and timed
    WRONG = "wrong"  # timed, but its result is not accepted: in no speed-up
    NOT_APPLICABLE = "not applicable"  # cannot run the problem; the reason says why
    SKIPPED = "skipped"  # could, but would cost too much; the reason says how much


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Largest errors against the fp32 reference over all checked inputs, beside those of a naive computation."""

    max_abs_error: float | None  # None when the result is not finite
    plain_max_abs_error: float
    cases: int


@dataclass(frozen=True, slots=True)
class Timing:
    """GPU time of one run in a CUDA graph, in microseconds."""

    us: Interval
    samples: int
    runs_per_sample: int


@dataclass(frozen=True, slots=True)
class Eager:
    """Wall time of one call from Python, in microseconds: until it returns, and until its result is there."""

    call_us: float
    latency_us: float


@dataclass(frozen=True, slots=True)
class Result:
    """One contestant on one problem."""

    contestant: str
    status: Status
    reason: str = ""  # why not RIGHT
    note: str = ""  # what a reader of the times must know
    accuracy: Accuracy | None = None
    timing: Timing | None = None
    eager: Eager | None = None

    @property
    def us(self) -> float | None:
        """The median of a right and timed result."""
        return self.timing.us.median if self.timing and self.status is Status.RIGHT else None


@dataclass(frozen=True, slots=True)
class Served:
    """What the daemon answered for a problem."""

    variant: str
    provenance: str
    ctas: int  # of the main launch
    tuned_us: float  # the daemon's own median; 0 when it never timed the variant


@dataclass(frozen=True, slots=True)
class Row:
    """One problem: what it needs, what was served, and how everybody did."""

    problem: str
    kind: str  # "prefill" or "decode"
    flops: int
    bytes: int
    roof_us: float
    bound: str  # which of the two bounds a kernel: "compute" or "memory"
    input_sets: int
    results: dict[str, Result] = field(default_factory=dict)  # by contestant, in the order of the run
    served: Served | None = None
    sm_clock_mhz: int = 0  # NVML's, while the row was timed; 0 when unknown
    power_w: float = 0.0
    throttle: str = ""  # NVML's reasons, empty when none

    def us(self, contestant: str) -> float | None:
        """A contestant's median in microseconds; None when it has no right and timed result."""
        result = self.results.get(contestant)
        return result.us if result else None

    def best_of_torch(self) -> str | None:
        """The fastest contestant that is not ours."""
        others = (name for name in self.results if name not in (OURS, OURS_16) and self.us(name))
        return min(others, key=self.us, default=None)

    def speedup(self, over: str | None, of: str = OURS) -> float | None:
        """The time of `over` by the time of `of`; None when one of them has none."""
        if over is None or (mine := self.us(of)) is None or (theirs := self.us(over)) is None:
            return None
        return theirs / mine

    def percent_of_roof(self, contestant: str) -> float | None:
        """The roof's time as a percentage of the contestant's."""
        us = self.us(contestant)
        return None if us is None else 100 * self.roof_us / us


@dataclass(frozen=True, slots=True)
class Floors:
    """What the device reaches at best, measured in the same run: an empty kernel in a graph, reading, `mma.sync`."""

    launch_us: Interval
    read_gbs: Interval
    mma_tflops: Interval


@dataclass(frozen=True, slots=True)
class Header:
    """Where, when and how a run was made."""

    date: str  # ISO 8601, UTC
    command: str
    device: str  # "NVIDIA H200"
    sm_count: int
    l2_bytes: int
    memory_bytes: int
    driver: str
    libraries: dict[str, str]  # versions of PyTorch, CUDA, cuDNN, Triton
    floors: Floors
    contestants: tuple[str, ...]
    problems: tuple[str, ...]  # that the run was asked for

    @property
    def slug(self) -> str:
        """The device in file names: "h200" for "NVIDIA H200"."""
        return re.sub("[^a-z0-9]+", "-", self.device.lower().removeprefix("nvidia")).strip("-")
