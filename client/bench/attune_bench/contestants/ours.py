"""attune's kernel: what the daemon answered, launched by the Python client."""

from __future__ import annotations

from collections.abc import Mapping

import attune
import torch
from attune.problem import Problem
from attune.values import Answer

from attune_bench.contestants.contestant import NotApplicable, Ready
from attune_bench.grid import with_16_bits
from attune_bench.inputs import Inputs
from attune_bench.records import OURS, OURS_16


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
            result = kernel(*arguments(problem, some), **scales(problem, some))
            return result[0] if problem.lse else result

        call(inputs)
        return Ready(call)


class Ours16:
    """The served variant of each problem of 8 bits with K and V of 16: the same cache, as it would be otherwise."""

    name = OURS_16

    def __init__(self, answers: Mapping[Problem, Answer | str]) -> None:
        self._ours = Ours(answers)

    def prepare(self, problem: Problem, inputs: Inputs) -> Ready:
        """As Contestant.prepare."""
        if not problem.kv_dtype:
            raise NotApplicable(f"K and V are of 16 bits: that is '{OURS}'")
        return self._ours.prepare(with_16_bits(problem), inputs)


def arguments(problem: Problem, inputs: Inputs) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Q, K and V as a kernel for `problem` reads them."""
    return (inputs.q, inputs.cache.k, inputs.cache.v) if problem.kv_dtype else (inputs.q, inputs.k, inputs.v)


def scales(problem: Problem, inputs: Inputs) -> dict[str, torch.Tensor]:
    """What such a kernel is given beside them."""
    return {"k_scale": inputs.cache.k_scale, "v_scale": inputs.cache.v_scale} if problem.kv_dtype else {}
