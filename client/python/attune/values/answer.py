"""The best known variant for a problem, and what is known about it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from datetime import datetime

from attune.problem import Problem
from attune.values.convert import Value
from attune.values.domain import Domain, domains_of
from attune.values.enums import ArtifactState, Objective, Policy, Provenance
from attune.values.recipe import LaunchRecipe
from attune.values.trial import Accuracy, Dependencies, Geometry, Timing, Trial, Variant


@dataclass(frozen=True, slots=True)
class Baseline(Value):
    """Somebody else's time for the same problem on the same device."""

    problem: Problem
    device_id: str
    policy: Policy
    contender: str  # "torch-sdpa-flash 2.11"
    median_us: float
    low_us: float
    high_us: float
    record_time: datetime | None
    note: str


@dataclass(frozen=True, slots=True)
class SearchClaim(Value):
    """What a search that has not tried every variant says of its best."""

    within: float  # 0.02: nothing is more than 2 % faster
    confidence: float  # 0.95
    tried: int  # trials, known ones included
    of: int  # variants


@dataclass(frozen=True, slots=True)
class PredictedTime(Value):
    """How long a variant is expected to take for a problem that it was not timed for."""

    us: float
    low_us: float  # four of five are between these
    high_us: float


@dataclass(frozen=True, slots=True)
class Answer(Value):
    problem: Problem
    device_id: str
    provenance: Provenance
    provenance_detail: str  # "source of attention_wmma changed", "from b2.h8.q512.d64.f16"
    variant: Variant
    recipe: LaunchRecipe  # for the problem asked for
    timing: Timing | None  # of the play-off it was promoted in; with NEAREST the near problem's; None with HEURISTIC
    geometry: Geometry | None
    accuracy: Accuracy | None
    artifact_sha256: str
    artifact: bytes | None = field(repr=False)  # cubin, PTX or OpenCL binary, when asked for and there is one
    trial: str  # "trials/123"; empty with HEURISTIC
    ties: tuple[Variant, ...]  # variants statistically tied with this one
    baselines: tuple[Baseline, ...]
    promote_time: datetime | None
    measure_time: datetime | None  # of `timing`
    pinned: bool  # served because evaluate was asked to pin it
    artifact_state: ArtifactState  # whether there is code to launch it with
    artifact_reason: str  # why there is NONE
    domains: tuple[Domain, ...] = ()  # other problems that it holds for, when asked for
    claim: SearchClaim | None = None  # of the search that found it; None where that said nothing
    predicted: PredictedTime | None = None  # with NEAREST, as the server gave it: for the problem asked for
    # ENERGY or EDP: certainly better by that than the fastest, which it is not. UNSPECIFIED: the fastest.
    objective: Objective = Objective.UNSPECIFIED

    def at(self, problem: Problem | str) -> Answer | None:
        """The answer for another problem, or for its own, made from this one without a question: the same code,
        launched with other numbers. None where no domain has the problem."""
        problem = Problem.of(problem)
        if problem == self.problem:
            return self
        for domain, length in domains_of(self.problem, self.domains, problem):
            tuned = self.provenance in (Provenance.EXACT, Provenance.TIE, Provenance.STALE)
            return dataclasses.replace(
                self,
                problem=problem,
                provenance=Provenance.NEAREST if tuned else self.provenance,
                provenance_detail=f"from {self.problem}" if tuned else self.provenance_detail,
                recipe=domain.recipe(self.recipe, length),
                geometry=None,
                ties=(),
                baselines=(),
                pinned=False,
                domains=(),
                claim=None,
                predicted=None,
            )
        return None

    def with_source(self, source: str) -> Answer:
        """The same answer, its provenance_detail saying also where this copy comes from."""
        detail = f"{self.provenance_detail}; {source}" if self.provenance_detail else source
        return dataclasses.replace(self, provenance_detail=detail)

    def _repr_html_(self) -> str:
        from attune.display import answer_html

        return answer_html(self)


@dataclass(frozen=True, slots=True)
class Alternative(Value):
    """A variant that is certainly better than the incumbent by another measure than time."""

    objective: Objective  # ENERGY or EDP
    trial: Trial | None  # with its time and energy in the play-off that chose it; None: it is the incumbent itself


@dataclass(frozen=True, slots=True)
class Incumbent(Value):
    """The variant served for a problem on a class of device under a policy, from a moment on."""

    name: str  # "incumbents/45"
    problem: Problem
    device_id: str
    policy: Policy
    trial: Trial
    promote_time: datetime | None
    job: str
    previous: str  # "incumbents/..."; empty for the first
    why: str
    rolled_back: bool  # a later roll-back took this one out
    ties: tuple[Variant, ...]
    timing: Timing | None  # of the play-off it was promoted in; None in those of earlier versions
    pinned: bool  # no faster variant replaces it until it is unpinned
    device_class: str  # Device.fingerprint of those that it is served on; device_id is of the one that timed it
    claim: SearchClaim | None  # of the search that found it; None where that said nothing
    alternatives: tuple[Alternative, ...]  # of tunings with an objective: at most one for each but TIME


@dataclass(frozen=True, slots=True)
class Retiming(Value):
    """One play-off's time of a variant that was served before it or is served after it."""

    name: str  # "retimings/12"
    problem_text: str
    device_id: str
    device_uuid: str  # of the card; empty when its backend gives none
    policy: Policy
    variant: str  # its text
    timing: Timing
    dependencies: Dependencies
    job: str  # "operations/..." that timed it
    finish_time: datetime | None
    count: int  # re-timings that it stands for, in a list by spans: the one of median time, with the widest interval


@dataclass(frozen=True, slots=True)
class Miss(Value):
    """A problem that was asked for on a class of device under a policy, and that nobody has tuned there."""

    problem: Problem
    device_id: str  # of the class's first card
    device_class: str
    policy: Policy
    count: int  # questions to the server; what a client remembers costs none
    first_time: datetime | None
    last_time: datetime | None
    provenance: Provenance  # of the answer: NEAREST or HEURISTIC; UNSPECIFIED: there was none
    provenance_detail: str
    variant: Variant | None
    artifact_state: ArtifactState
