"""Q, K and V on the device, as a problem has them in memory."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from attune.problem import Problem

from attune_bench.rotation import set_count
from attune_bench.work import compulsory_bytes

DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16}


@dataclass(frozen=True, slots=True)
class Inputs:
    """Q [batch, heads_q, seq_q, head_dim]; K, V [batch, heads_kv, seq_kv, head_dim]; strides follow the layout."""

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor


def _normal(problem: Problem, heads: int, seq: int, mean: float, generator: torch.Generator) -> torch.Tensor:
    shape = (problem.batch, heads, seq, problem.head_dim)
    if problem.layout == "bshd":
        shape = (problem.batch, seq, heads, problem.head_dim)
    tensor = torch.empty(shape, dtype=DTYPES[problem.dtype], device="cuda").normal_(mean, 1.0, generator=generator)
    return tensor.transpose(1, 2) if problem.layout == "bshd" else tensor


def make_inputs(problem: Problem, seed: int, mean: float = 0.0) -> Inputs:
    """Normal numbers; K and V around `mean`, because inputs around 0 hide errors of normalisation."""
    generator = torch.Generator("cuda").manual_seed(seed)
    return Inputs(
        q=_normal(problem, problem.heads_q, problem.seq_q, 0.0, generator),
        k=_normal(problem, problem.heads_kv, problem.seq_kv, mean, generator),
        v=_normal(problem, problem.heads_kv, problem.seq_kv, mean, generator),
    )


def rotating_inputs(problem: Problem, l2_bytes: int, memory_bytes: int) -> list[Inputs]:
    """What the timed runs go through in turn."""
    sets = set_count(compulsory_bytes(problem), l2_bytes, memory_bytes)
    return [make_inputs(problem, seed) for seed in range(sets)]
