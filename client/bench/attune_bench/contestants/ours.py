"""attune's kernel: what the daemon answered, launched by the Python client."""

from __future__ import annotations

from collections.abc import Mapping

import attune
import torch
from attune.problem import Problem
from attune.values import Answer

from attune_bench.contestants.contestant import NotApplicable, Ready
from attune_bench.inputs import Inputs
from attune_bench.records import OURS


class Ours:
    """The served variant of each problem."""

    name = OURS

    def __init__(self, answers: Mapping[Problem, Answer | str]) -> None:
        """`answers` has for each problem the daemon's answer with its artifact, or why there is none."""
        self._answers = answers

    def prepare(self, problem: Problem, inputs: Inputs) -> Ready:
        """As Contestant.prepare."""
        answer = self._answers[problem]
        if isinstance(answer, str):
            raise NotApplicable(answer)
        kernel = attune.load(answer)

        def call(some: Inputs) -> torch.Tensor:
            result = kernel(some.q, some.k, some.v)
            return result[0] if problem.lse else result

        call(inputs)
        return Ready(call)
