"""Checks a contestant's results against fp32 on several inputs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from attune.problem import Problem

from attune_bench.inputs import Inputs, make_inputs
from attune_bench.records import Accuracy
from attune_bench.reference import fp32_attention, naive_attention
from attune_bench.tolerance import errors_of, why_wrong

# Seed and mean of K and V. Seeds that timing does not use.
_CASES = ((1001, 0.0), (1002, 1.0))


@dataclass(frozen=True, slots=True)
class Case:
    """Inputs with the results to expect, both [batch, heads_q, seq_q, head_dim]."""

    inputs: Inputs
    reference: torch.Tensor  # fp32
    plain_max_abs_error: float


def make_cases(problem: Problem) -> list[Case]:
    """What every contestant on `problem` is checked on."""
    cases = []
    for seed, mean in _CASES:
        inputs = make_inputs(problem, seed, mean)
        reference = fp32_attention(problem, inputs)
        if not torch.isfinite(reference).all():
            raise RuntimeError(f"the fp32 reference of {problem} is not finite")
        error = (naive_attention(problem, inputs).float() - reference).abs().max().item()
        cases.append(Case(inputs, reference, error))
    return cases


def _poison_free_memory(like: torch.Tensor) -> None:
    """Makes the next tensor of this size come filled with NaN, so that what a contestant leaves unwritten shows."""
    torch.cuda.empty_cache()
    torch.full_like(like, math.nan)


def check(problem: Problem, run: Callable[[Inputs], torch.Tensor], cases: list[Case]) -> tuple[Accuracy, str]:
    """The largest errors over the cases, and why the result is wrong, empty when it is right."""
    worst, plain_error, why = 0.0, 0.0, ""
    for case in cases:
        _poison_free_memory(case.inputs.q)
        output = run(case.inputs)
        if output.shape != case.reference.shape:
            why = why or f"the result is {list(output.shape)}; expected is {list(case.reference.shape)}"
            worst = math.inf
            continue
        errors = errors_of(problem.dtype, output.float(), case.reference, case.plain_max_abs_error)
        worst, plain_error = max(worst, errors.max_abs_error), max(plain_error, case.plain_max_abs_error)
        why = why or why_wrong(problem.dtype, errors)
    return Accuracy(worst if math.isfinite(worst) else None, plain_error, len(cases)), why
