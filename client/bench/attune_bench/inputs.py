"""Q, K and V on the device, as a problem has them in memory."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from attune.problem import Problem

from attune_bench.rotation import set_count
from attune_bench.work import compulsory_bytes

DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16}
KV_DTYPES = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}


@dataclass(frozen=True, slots=True)
class Cache:
    """K and V of 8 bits, laid out as those of 16; a value is its element times its head's scale, fp32 [heads_kv]."""

    k: torch.Tensor
    v: torch.Tensor
    k_scale: torch.Tensor
    v_scale: torch.Tensor


@dataclass(frozen=True, slots=True)
class Inputs:
    """Q [batch, heads_q, seq_q, head_dim]; K, V [batch, heads_kv, seq_kv, head_dim]; strides follow the layout."""

    q: torch.Tensor
    k: torch.Tensor  # where the problem's are of 8 bits: the same values in Q's type, exactly
    v: torch.Tensor
    cache: Cache | None = None  # of problems with 8 bits


def _normal(problem: Problem, heads: int, seq: int, mean: float, generator: torch.Generator) -> torch.Tensor:
    shape = (problem.batch, heads, seq, problem.head_dim)
    if problem.layout == "bshd":
        shape = (problem.batch, seq, heads, problem.head_dim)
    tensor = torch.empty(shape, dtype=DTYPES[problem.dtype], device="cuda").normal_(mean, 1.0, generator=generator)
    return tensor.transpose(1, 2) if problem.layout == "bshd" else tensor


def make_inputs(problem: Problem, seed: int, mean: float = 0.0) -> Inputs:
    """Normal numbers; K and V around `mean`, because inputs around 0 hide errors of normalisation."""
    generator = torch.Generator("cuda").manual_seed(seed)
    q = _normal(problem, problem.heads_q, problem.seq_q, 0.0, generator)
    k, v = (_normal(problem, problem.heads_kv, problem.seq_kv, mean, generator) for _ in range(2))
    return quantised(problem, q, k, v) if problem.kv_dtype else Inputs(q, k, v)


def quantised(problem: Problem, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Inputs:
    """K and V rounded to a problem's 8 bits. Scales are powers of two, so that Q's type has the same values."""
    head = torch.arange(problem.heads_kv, device=q.device)
    k_scale, v_scale = (0.5 ** (first + head % 3).float() for first in (3, 2))
    wide, elements = [], []
    for x, scale in ((k, k_scale), (v, v_scale)):
        of_rows = scale.to(x.dtype)[:, None, None]
        elements.append((x / of_rows).to(KV_DTYPES[problem.kv_dtype]))
        wide.append(elements[-1].to(x.dtype) * of_rows)
    return Inputs(q, *wide, cache=Cache(*elements, k_scale, v_scale))


def rotating_inputs(problem: Problem, l2_bytes: int, memory_bytes: int) -> list[Inputs]:
    """What the timed runs go through in turn."""
    sets = set_count(compulsory_bytes(problem), l2_bytes, memory_bytes)
    return [make_inputs(problem, seed) for seed in range(sets)]
