"""Attention as FlashAttention's README defines it, one sequence at a time and with an explicit mask."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest

torch = pytest.importorskip("torch")


def reference(
    q: Any,
    k: Any,
    v: Any,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: Any = None,
    softmax_scale: float | None = None,
) -> tuple[Any, Any]:
    """Of one sequence, [length, heads, headdim]: out, and lse [heads, rows]."""
    rows, heads, dim = q.shape
    keys, group = k.shape[0], heads // k.shape[1]
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    logits = torch.einsum("rhd,khd->hrk", q, k) * (softmax_scale or 1 / math.sqrt(dim))
    if softcap:
        logits = softcap * torch.tanh(logits / softcap)
    left, right = window_size
    for i, j in itertools.product(range(rows), range(keys)):
        at = i + keys - rows
        if (causal and j > at) or (left >= 0 and j < at - left) or (right >= 0 and j > at + right):
            logits[:, i, j] = -math.inf
        elif alibi_slopes is not None:
            logits[:, i, j] -= alibi_slopes * abs(at - j)
    return torch.einsum("hrk,khd->rhd", logits.softmax(-1).nan_to_num(), v), logits.logsumexp(-1)


def agree(out: Any, expected: Any) -> None:
    torch.testing.assert_close(out, expected, rtol=1e-4, atol=1e-5)
