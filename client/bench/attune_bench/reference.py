"""What results are checked against: attention in fp32, and a naive computation at the problem's own precision.

Both work on a few heads, or a few rows of one head, at a time, so that the logits fit beside everything else. The query
heads that share a head of K and V are handled as one head with as many rows:

    Q [batch, heads_q, seq_q, d]  ->  [batch * heads_kv, group * seq_q, d]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from attune.problem import Problem

from attune_bench.inputs import Inputs

# Logits at a time: 1 GiB in fp32, a few times that with what the softmax needs.
MOST_LOGITS = 1 << 28

# (q [n, rows, d], k [n, seq_kv, d], v [n, seq_kv, d], visible [rows, seq_kv] or None, problem) -> o [n, rows, d]
_Attention = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, "torch.Tensor | None", Problem], torch.Tensor]


def fp32_attention(problem: Problem, inputs: Inputs) -> torch.Tensor:
    """O in fp32, [batch, heads_q, seq_q, head_dim], from fp32 products without TF32."""
    return _in_chunks(problem, inputs, torch.float32, _fp32)


def naive_attention(problem: Problem, inputs: Inputs) -> torch.Tensor:
    """O as an unfused computation gives it that rounds each step to the dtype: Q K^T, the scaled logits, P, O."""
    return _in_chunks(problem, inputs, inputs.q.dtype, _naive)


def _fp32(q, k, v, visible, problem):
    return _softmax(_softcapped(torch.bmm(q, k.mT) / math.sqrt(problem.head_dim), problem), visible) @ v


def _naive(q, k, v, visible, problem):
    logits = _softcapped(torch.bmm(q, k.mT) * (1 / math.sqrt(problem.head_dim)), problem)
    return _softmax(logits, visible).to(q.dtype) @ v


def _softcapped(logits: torch.Tensor, problem: Problem) -> torch.Tensor:
    return problem.softcap * torch.tanh(logits / problem.softcap) if problem.softcap else logits


def _softmax(logits: torch.Tensor, visible: torch.Tensor | None) -> torch.Tensor:
    """In fp32; a row that sees nothing is 0."""
    if visible is None:
        return torch.softmax(logits, -1, dtype=torch.float32)
    logits = logits.masked_fill_(~visible, -math.inf)
    return torch.softmax(logits, -1, dtype=torch.float32).masked_fill_(~visible, 0.0)


def visible_keys(problem: Problem, rows: torch.Tensor) -> torch.Tensor | None:
    """Which keys each of the query rows sees: bool [rows, seq_kv]; None when all see all."""
    if problem.mask == "none":
        return None
    last = (rows + (0 if problem.mask == "causal" else problem.seq_kv - problem.seq_q))[:, None]
    key = torch.arange(problem.seq_kv, device=rows.device)[None, :]
    visible = key <= last
    return visible & (key > last - problem.window) if problem.mask == "window" else visible


def _in_chunks(problem: Problem, inputs: Inputs, dtype: torch.dtype, attention: _Attention) -> torch.Tensor:
    heads = problem.batch * problem.heads_kv
    rows = problem.heads_q // problem.heads_kv * problem.seq_q
    q = inputs.q.reshape(heads, rows, problem.head_dim)
    k = inputs.k.reshape(heads, problem.seq_kv, problem.head_dim)
    v = inputs.v.reshape(heads, problem.seq_kv, problem.head_dim)
    o = torch.empty(q.shape, dtype=dtype, device=q.device)
    heads_at_once = max(1, MOST_LOGITS // (rows * problem.seq_kv))
    rows_at_once = max(1, min(rows, MOST_LOGITS // problem.seq_kv))
    with _full_precision():
        for head in range(0, heads, heads_at_once):
            some = slice(head, head + heads_at_once)
            keys, values = k[some].to(dtype), v[some].to(dtype)
            for begin, end in _spans(rows, rows_at_once):
                positions = torch.arange(begin, end, device=q.device) % problem.seq_q
                visible = visible_keys(problem, positions)
                o[some, begin:end] = attention(q[some, begin:end].to(dtype), keys, values, visible, problem)
    return o.reshape(problem.batch, problem.heads_q, problem.seq_q, problem.head_dim)


def _spans(length: int, step: int) -> Iterator[tuple[int, int]]:
    for begin in range(0, length, step):
        yield begin, min(begin + step, length)


@contextmanager
def _full_precision() -> Iterator[None]:
    """Products accumulate in fp32 and use no TF32, whatever the process has set."""
    matmul = torch.backends.cuda.matmul
    before = matmul.allow_tf32, matmul.allow_fp16_reduced_precision_reduction
    matmul.allow_tf32 = matmul.allow_fp16_reduced_precision_reduction = False
    try:
        yield
    finally:
        matmul.allow_tf32, matmul.allow_fp16_reduced_precision_reduction = before
