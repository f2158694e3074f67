"""Kernels that authors bring, and what they came to."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from attune.values.convert import Value
from attune.values.enums import Gate, Policy, SubmissionState, SubmitDecision
from attune.values.trial import Trial


@dataclass(frozen=True, slots=True)
class SourceFile(Value):
    path: str  # relative, with '/' between its parts
    text: bytes


@dataclass(frozen=True, slots=True)
class Diagnostic(Value):
    """What a compiler said, and of which line; of file and line what it did not say is empty and 0."""

    path: str
    line: int
    column: int
    text: str


@dataclass(frozen=True, slots=True)
class GateFinding(Value):
    """A rule of thumb that the submission breaks."""

    gate: Gate
    failed: bool  # reverts; otherwise a warning
    text: str  # a sentence with the figures in it


@dataclass(frozen=True, slots=True)
class SubmitRow(Value):
    """Of one problem."""

    problem: str  # canonical text
    decision: SubmitDecision  # of this problem alone
    reason: str
    trial: Trial | None  # of the best variant, or of what went wrong
    base: str  # "incumbents/3" or "submissions/6"; empty: there is none
    base_trial: Trial | None  # timed in the same run
    speedup: float  # base's time over the submission's; 0: not timed
    gates: tuple[GateFinding, ...]
    diagnostics: tuple[Diagnostic, ...]  # with COMPILE_ERROR
    variants_tried: int
    variants: int  # that are feasible


@dataclass(frozen=True, slots=True)
class SubmitResult(Value):
    decision: SubmitDecision
    reason: str
    submission: str  # "submissions/7"
    rows: tuple[SubmitRow, ...]


@dataclass(frozen=True, slots=True)
class Submission(Value):
    name: str  # "submissions/7"
    content_hash: str
    family: str  # as its trials name it
    principal: str  # whose it is
    loop: str
    iteration: int  # of the loop, from 1; 0: of none
    hypothesis: str
    base: str  # as it was asked for
    problems: tuple[str, ...]
    device_id: str
    policy: Policy
    state: SubmissionState
    create_time: datetime | None
    operation: str
    result: SubmitResult | None
    files: tuple[SourceFile, ...]  # of Client.submission alone
    state_principal: str  # who adopted or withdrew it
    state_time: datetime | None
