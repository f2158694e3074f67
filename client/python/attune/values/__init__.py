"""What a server says, as frozen dataclasses named and laid out as the messages of proto/attune/v1."""

from __future__ import annotations

from attune.values.answer import Answer, Baseline, Incumbent
from attune.values.device import (
    BackendStatus,
    Constraint,
    Device,
    FamilyPreflight,
    Host,
    KernelFamily,
    Parameter,
    Preflight,
)
from attune.values.enums import (
    Backend,
    Bound,
    Decision,
    Outcome,
    Phase,
    Policy,
    Provenance,
    State,
    Strategy,
    Verdict,
)
from attune.values.explanation import Explanation, Finding
from attune.values.operation import (
    EvaluateResult,
    Operation,
    Progress,
    RemovedByConstraint,
    SweepReport,
    SweepRow,
    TuneResult,
)
from attune.values.recipe import KernelArg, KernelLaunch, LaunchRecipe, ScratchBuffer
from attune.values.trial import (
    Accuracy,
    Dependencies,
    Geometry,
    Resources,
    Timing,
    Trial,
    Variant,
)

__all__ = [
    "Accuracy",
    "Answer",
    "Backend",
    "BackendStatus",
    "Baseline",
    "Bound",
    "Constraint",
    "Decision",
    "Dependencies",
    "Device",
    "EvaluateResult",
    "Explanation",
    "FamilyPreflight",
    "Finding",
    "Geometry",
    "Host",
    "Incumbent",
    "KernelArg",
    "KernelFamily",
    "KernelLaunch",
    "LaunchRecipe",
    "Operation",
    "Outcome",
    "Parameter",
    "Phase",
    "Policy",
    "Preflight",
    "Progress",
    "Provenance",
    "RemovedByConstraint",
    "Resources",
    "ScratchBuffer",
    "State",
    "Strategy",
    "SweepReport",
    "SweepRow",
    "Timing",
    "Trial",
    "TuneResult",
    "Variant",
    "Verdict",
]
