"""What bounds a trial, in words and figures."""

from __future__ import annotations

from dataclasses import dataclass

from attune.values.convert import Value
from attune.values.enums import Bound
from attune.values.trial import Trial


@dataclass(frozen=True, slots=True)
class Finding(Value):
    bound: Bound
    text: str  # a sentence with the figures in it
    advice: str  # which parameter to move, and where


@dataclass(frozen=True, slots=True)
class Explanation(Value):
    trial: Trial
    findings: tuple[Finding, ...]  # what weighs most first
    flops: float  # the problem needs
    bytes: float  # the least the problem moves
    tflops: float  # reached
    gbs: float  # reached, 10^9 bytes/s

    def _repr_html_(self) -> str:
        from attune.display import explanation_html

        return explanation_html(self)
