"""What is known of a kernel's time beside its rival's: by a contest here, and by the service's baselines."""

from __future__ import annotations

import math
from typing import NamedTuple

from attune.background.reason import Reason, Unsuitable
from attune.problem import Problem
from attune.values import Answer, Baseline, Policy, Provenance

MARGIN = 1.02  # by which the kernel must be faster
BY_ATTUNE_BENCH = "sdpa"  # its name for what torch picks by itself
_TORCHS = "torch-sdpa "  # and a version; in brackets the backends, unless all are enabled


class Verdict(NamedTuple):
    faster: bool  # the kernel is, by MARGIN
    of_device: bool  # by pairs that are bound to the device
    rival: str
    ratio: float = 1.0  # the rival's time by the kernel's; median of the pairs
    low: float = 1.0  # the least and the greatest
    high: float = 1.0
    kernel_us: float = 0.0  # medians
    rival_us: float = 0.0

    def unsuitable(self) -> Unsuitable:
        if not self.kernel_us:
            return Unsuitable(Reason.SLOWER, "the kernel could not be timed against SDPA, which keeps the calls")
        times = f"{self.rival_us:.1f} us against {self.kernel_us:.1f} us"
        return Unsuitable(Reason.SLOWER, f"SDPA is faster here, or within 2 %: {times}")


class Report(NamedTuple):
    """What Client.record_baseline is told."""

    problem: Problem
    contender: str
    median_us: float
    low_us: float
    high_us: float
    device: str
    note: str


class Recorded(NamedTuple):
    """What the service knows of a kernel and its rival."""

    faster: bool  # the kernel is
    in_place: bool  # found by a contest of this very kernel
    rival_us: float
    kernel_us: float

    def unsuitable(self) -> Unsuitable:
        times = f"{self.rival_us:.1f} us against {self.kernel_us:.1f} us"
        return Unsuitable(Reason.SLOWER, f"SDPA is faster as the service has it recorded: {times}")


def recorded(answer: Answer, policy: Policy, rival: str) -> Recorded | None:
    """By `answer.baselines`: by a contest of this kernel against `rival` if there was one, else by the newest time of
    any torch with the same backends. None if nothing is recorded of this problem under `policy`."""
    if answer.timing is None:
        return None
    known = [each for each in answer.baselines if each.problem == answer.problem and each.policy is policy]
    own = [each for each in known if each.contender == rival and _mark(answer) in each.note]
    rivals = [each for each in known if _is_rival(each.contender, rival)]
    if not rivals:
        return None
    newest = max(own or rivals, key=_when)
    least = answer.timing.median_us * (MARGIN if own else 1.0)
    return Recorded(newest.median_us >= least, bool(own), newest.median_us, answer.timing.median_us)


def report(answer: Answer, verdict: Verdict) -> Report | None:
    """The device's verdict as a baseline. Its time is what compares with `answer.timing` as the rival's did with the
    kernel's here, under the caller's clocks and cache; the note has the times themselves. None if there is no such
    time of this problem."""
    timing = answer.timing
    if timing is None or not verdict.of_device or not verdict.kernel_us or answer.provenance is Provenance.NEAREST:
        return None
    median, low, high = (timing.median_us * ratio for ratio in (verdict.ratio, verdict.low, verdict.high))
    times = f"{verdict.rival_us:.2f} us against {verdict.kernel_us:.2f} us"
    note = f"in place, relative to {_mark(answer)}: {times}"
    return Report(answer.problem, verdict.rival, median, low, high, answer.device_id, note)


def _mark(answer: Answer) -> str:
    return f"artifact {answer.artifact_sha256[:16]}"


def _when(baseline: Baseline) -> float:
    return -math.inf if baseline.record_time is None else baseline.record_time.timestamp()


def _is_rival(contender: str, rival: str) -> bool:
    backends = rival.partition(" (")[2]
    if contender == BY_ATTUNE_BENCH:
        return not backends
    return contender.startswith(_TORCHS) and contender.partition(" (")[2] == backends
