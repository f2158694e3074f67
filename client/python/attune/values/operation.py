"""Work that a server does: its progress, and what it ends with."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeAlias

from google.protobuf.message import Message

from attune import errors
from attune.values.answer import Incumbent, SearchClaim
from attune.values.convert import Value, reads
from attune.values.enums import Decision, Outcome, Phase, State, Verdict
from attune.values.submission import SubmitResult
from attune.values.trial import Trial


@dataclass(frozen=True, slots=True)
class PhaseBegin(Value):
    phase: Phase
    time: datetime | None


@dataclass(frozen=True, slots=True)
class OperationCost(Value):
    """Where a job's time went, milliseconds. All but the last two add up to its time on the device."""

    prepare_ms: float  # inputs and reference results
    check_ms: float  # of its trials
    time_ms: float
    play_off_ms: float  # second checks, timing in turn, many runs
    wait_ms: float  # nothing was asked of the device
    device_ms: float  # of all these: work ran on the device, by its own events; 0: it has none
    compile_ms: float  # of compile workers, beside these and beside each other


@dataclass(frozen=True, slots=True)
class CardShare(Value):
    """What one of several cards does for a tuning."""

    device_id: str
    trials: int  # that it ran, or that needed no run
    at_work: bool  # False before it is its turn there, and behind the trials
    lost: str  # why the tuning goes on without it; empty: it has it, or waits for it


@dataclass(frozen=True, slots=True)
class Progress(Value):
    """Of an operation, as it stands."""

    phase: Phase
    trials_done: int
    trials_total: int
    compiles_done: int
    compiles_total: int
    verdicts: dict[Verdict, int] = field(
        hash=False,
        metadata=reads(lambda message: {Verdict(entry.verdict): entry.count for entry in message.verdicts}),
    )
    best: Trial | None  # so far
    device_busy: float  # share of its time on the device in which that had work, by its own events; 0: it has none
    eta: timedelta | None  # of the whole operation; None while too little is known
    elapsed: timedelta | None
    message: str  # one line, for people
    trials_reused: int  # already in the store under the same dependencies
    waits_for: str  # "operations/..." that goes first, while this one is in the queue; else empty
    waits_for_title: str
    queue_position: int  # how many operations are ahead of this one; 0 when it waits for none
    problems_done: int  # of a sweep; trials and compiles are then those of the problems at hand
    problems_total: int
    device_id: str  # the card that works on it, or did; empty with a sweep
    phases: tuple[PhaseBegin, ...]  # those that it has come to, in order
    cost: OperationCost | None  # so far, of the process that runs it; None with a sweep
    cards: tuple[CardShare, ...]  # of a tuning on several, device_id's the first; empty otherwise


@dataclass(frozen=True, slots=True)
class RemovedByConstraint(Value):
    """How many variants a constraint of a family's manifest took out."""

    family: str
    constraint: str  # the expression
    reason: str  # the manifest's words
    removed: int
    advice: bool  # tune(ignore_advice=True) tries them


@dataclass(frozen=True, slots=True)
class TuneResult(Value):
    incumbent: Incumbent | None  # now served; None when no variant is OK
    winner: Trial | None
    promoted: bool  # False: the incumbent before this job kept its place
    decision: str  # why, in a sentence
    play_off: tuple[Trial, ...]  # best first
    removed: tuple[RemovedByConstraint, ...]
    floor_us: float  # launch overhead: the shortest launch on this device, measured in this job
    claim: SearchClaim | None  # of GUIDED, of what its trials found
    anchor_moved: float  # by how much one variant's time moved while the trials ran; 0: by less than 1 %


@dataclass(frozen=True, slots=True)
class EvaluateResult(Value):
    decision: Decision
    reason: str
    trial: Trial | None
    incumbent: Trial | None  # re-timed in the same run; None when there is none
    speedup: float  # incumbent's time over the variant's


@dataclass(frozen=True, slots=True)
class SweepRow(Value):
    problem: str  # canonical text
    outcome: Outcome
    before_us: float  # 0 when NEW
    after_us: float
    variant: str
    detail: str
    trials: int
    compiles: int
    device_id: str  # the card, of a class's sweep in a fleet with its host; empty when SKIPPED
    working_time: timedelta | None  # on the card, without what was waited for jobs ahead
    sanitizers: str  # of what would have been promoted: "clean", or what was found; empty: nobody was asked


@dataclass(frozen=True, slots=True)
class SweepReport(Value):
    title: str
    device_id: str  # the cards, with commas between
    rows: tuple[SweepRow, ...]
    trials: int
    compiles: int
    regression: bool  # any row SLOWER
    markdown: str

    def _repr_markdown_(self) -> str:
        return self.markdown


@dataclass(frozen=True, slots=True)
class PlannedProblem(Value):
    problem: str  # canonical text
    variants: int
    known: int  # already have a trial under today's dependencies
    trials: int  # would be run, as the budget allows
    compiles: int  # at most: distinct compile-time parts without a trial
    tuned: bool  # has an incumbent; with 0 trials it is only timed again
    reason: str  # why nothing would be tried, where no kernel family applies
    device_id: str  # the card that would take it; several, with commas: whichever is free first


@dataclass(frozen=True, slots=True)
class SweepPlan(Value):
    """What a sweep would do."""

    device_id: str  # the cards, with commas between
    rows: tuple[PlannedProblem, ...]
    variants: int  # of all rows
    known: int
    trials: int
    compiles: int
    estimate: timedelta | None  # from past trials on this device; None when there are none


@dataclass(frozen=True, slots=True)
class RetriedTrials(Value):
    trials: int  # that no longer keep their variants from being tried
    codes: int  # of theirs that had failed to compile and are compiled again
    problems: tuple[str, ...]  # canonical texts of the trials' problems, each once


@dataclass(frozen=True, slots=True)
class ProfileResult(Value):
    trial: Trial  # with its profile
    bound: str  # what bounds it, a sentence


@dataclass(frozen=True, slots=True)
class SanitizeResult(Value):
    trial: Trial  # with what was found
    clean: bool  # every tool that was asked for came to a result, without errors
    reason: str


Result: TypeAlias = TuneResult | SweepReport | EvaluateResult | SubmitResult | ProfileResult | SanitizeResult
_RESULTS: dict[str, type[Result]] = {
    "tune": TuneResult,
    "sweep": SweepReport,
    "evaluate": EvaluateResult,
    "submit": SubmitResult,
    "profile": ProfileResult,
    "sanitize": SanitizeResult,
}


def _read_result(message: Message) -> Result | None:
    which = message.WhichOneof("response")
    return _RESULTS[which].from_message(getattr(message, which)) if which else None


def _read_error(message: Message) -> errors.OperationFailed | None:
    if not message.HasField("error"):
        return None
    return errors.OperationFailed(
        f"{message.title or message.name} failed: {message.error.message}", code=errors.code_name(message.error.code)
    )


@dataclass(frozen=True, slots=True)
class Operation(Value):
    """A tuning, a sweep, an evaluation, a submission, a profile or a sanitizer run."""

    name: str  # "operations/..."
    title: str  # "tune b2.h8.q512.d64.f16 on cuda:0"
    state: State
    done: bool
    progress: Progress
    error: errors.OperationFailed | None = field(hash=False, metadata=reads(_read_error))
    response: Result | None = field(hash=False, metadata=reads(_read_result))
    create_time: datetime | None
    end_time: datetime | None
    request_id: str
    problem: str  # canonical text; empty with a sweep
    parent: str  # of one problem of a sweep: the sweep, "operations/..."; empty otherwise
    principal: str  # who started it, "uid:1000"; empty: the server itself
    device_time: timedelta | None  # that it ran on a card; not of a sweep, whose problems have their own

    def result(self) -> Result:
        """What the operation ended with. Raises OperationFailed, Cancelled, or FailedPrecondition while it runs.
        A sweep of which no problem has a result has failed, and `response` has its report all the same."""
        if self.error is not None:
            raise self.error
        what = self.title or self.name
        if self.state is State.CANCELLED:
            raise errors.Cancelled(f"{what} was cancelled")
        if not self.done:
            raise errors.FailedPrecondition(f"{what} is {self.state}; it has a result when it is SUCCEEDED")
        if self.response is None:
            raise errors.OperationFailed(f"{what} is done but has no result")
        return self.response
