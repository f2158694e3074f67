"""Attention as docs/problems.md defines it, of one sequence, in fp32: what every other way is compared with."""

from __future__ import annotations

import math
from typing import Any


def attention(
    query: Any,
    key: Any,
    value: Any,
    *,
    causal: str | None = None,
    window: int | None = None,
    softcap: float = 0.0,
    sinks: Any = None,
) -> tuple[Any, Any]:
    """Of query [rows, heads_q, head_dim] and key, value [keys, heads_kv, head_dim]: out like query, in fp32, and the
    log-sum-exp [heads_q, rows]. The sink is a column of logits whose value is 0."""
    import torch

    rows, heads, dim = query.shape
    keys, group = key.shape[0], heads // key.shape[1]
    if window is not None and causal is None:
        causal = "bottom-right"
    q, k, v = (x.float().transpose(0, 1) for x in (query, key, value))
    k, v = k.repeat_interleave(group, 0), v.repeat_interleave(group, 0)
    logits = q @ k.transpose(1, 2) / math.sqrt(dim)
    if softcap:
        logits = softcap * torch.tanh(logits / softcap)
    row = torch.arange(rows, device=query.device)[:, None] + (keys - rows if causal == "bottom-right" else 0)
    column = torch.arange(keys, device=query.device)[None, :]
    hidden = torch.zeros(rows, keys, dtype=torch.bool, device=query.device)
    if causal is not None:
        hidden |= column > row
    if window is not None:
        hidden |= column <= row - window
    logits = logits.masked_fill(hidden, -math.inf)
    nothing = torch.full((heads, 1), -math.inf, device=query.device)
    sink = nothing if sinks is None else sinks.float()[:, None]
    logits = torch.cat([logits, sink[:, None, :].expand(heads, rows, 1)], -1)
    weights = logits.softmax(-1).nan_to_num()[..., :-1]
    return (weights @ v).transpose(0, 1), logits.logsumexp(-1)
