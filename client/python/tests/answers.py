"""Answers that no daemon gave."""

from __future__ import annotations

import dataclasses
import hashlib
from typing import Any

from attune.problem import Problem
from attune.values import Answer, LaunchRecipe, Provenance, Variant

ARTIFACT = b"\x7fELF made for tests"


def answer(problem: str, recipe: LaunchRecipe, **changes: Any) -> Answer:
    """An answer with an artifact, but for `changes`."""
    fields: dict[str, Any] = dict.fromkeys((field.name for field in dataclasses.fields(Answer)), None)
    fields.update(
        problem=Problem.parse(problem),
        device_id="cuda:0",
        provenance=Provenance.EXACT,
        provenance_detail="",
        variant=Variant("family", {}, "family:A=1"),
        recipe=recipe,
        artifact=ARTIFACT,
        artifact_sha256=hashlib.sha256(changes.get("artifact") or ARTIFACT).hexdigest(),
        trial="trials/1",
        ties=(),
        baselines=(),
    )
    return Answer(**{**fields, **changes})
