"""What Nsight Compute and compute-sanitizer say of a trial's code."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from attune.values.convert import Value, reads
from attune.values.enums import SanitizerTool


@dataclass(frozen=True, slots=True)
class KernelProfile(Value):
    """One kernel of the trial's recipe. Shares are 0..1, times us; docs/profile.md lists the names."""

    entry: str
    counters: dict[str, float] = field(
        hash=False, metadata=reads(lambda message: {one.name: one.value for one in message.counters})
    )
    stalls: dict[str, float] = field(  # shares of the time between two issues, the largest first
        hash=False, metadata=reads(lambda message: {one.reason: one.share for one in message.stalls})
    )


@dataclass(frozen=True, slots=True)
class Profile(Value):
    kernels: tuple[KernelProfile, ...]  # in the order of their launches
    time: datetime | None
    operation: str  # "operations/..." that ran it


@dataclass(frozen=True, slots=True)
class SanitizerRun(Value):
    tool: SanitizerTool
    errors: int
    incomplete: str  # why the tool came to no result; empty: it did
    findings: tuple[str, ...]  # in its words, the first few


@dataclass(frozen=True, slots=True)
class Sanitizing(Value):
    """The last run of each tool."""

    runs: tuple[SanitizerRun, ...]
    time: datetime | None
    operation: str  # "operations/..." that ran it
