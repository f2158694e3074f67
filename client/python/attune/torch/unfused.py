"""Unfused attention in torch, for what neither a kernel nor SDPA computes: slow, differentiable, in memory that is
bounded but for an attn_mask that is given whole and for what autograd keeps."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

from attune.torch.local_bias import LocalBias
from attune.torch.options import Options

_MOST_LOGITS = 1 << 25  # held at once; a few tensors of this size in fp32 are alive together

Rows = tuple[Tensor, Tensor]  # O, and the log-sum-exp of each row


def unfused_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    options: Options,
    attn_mask: Tensor | LocalBias | None = None,
    dropout_p: float = 0.0,
) -> Rows:
    """[batch, heads_q, seq_q, head_dim] like the query's dtype, and fp32 [batch, heads_q, seq_q].

    query: [batch, heads_q, seq_q, head_dim]; key, value: [batch, heads_kv, seq_kv, head_dim], in any strides; computed
    in fp32 (fp64 of fp64). attn_mask is SDPA's, or makes it. Under autocast inputs and result have its dtype, as
    SDPA's.
    """
    device = query.device.type
    if torch.is_autocast_enabled(device) and query.dtype is not torch.float64:
        dtype = torch.get_autocast_dtype(device)
        query, key, value = query.to(dtype), key.to(dtype), value.to(dtype)
    with torch.autocast(device, enabled=False):
        return _in_parts(query, key, value, options, attn_mask, dropout_p)


def _in_parts(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    options: Options,
    attn_mask: Tensor | LocalBias | None,
    dropout_p: float,
) -> Rows:
    """By batch, by key/value head and by rows, as many at once as _MOST_LOGITS allows."""
    batch, heads_q, rows, dim = query.shape
    heads, keys = key.shape[1], key.shape[2]
    if heads_q == 0:
        return query.new_empty(batch, 0, rows, value.shape[-1]), query.new_empty(batch, 0, rows, dtype=torch.float32)
    group = heads_q // heads
    if isinstance(attn_mask, Tensor):
        attn_mask = attn_mask.expand(batch, heads_q, rows, keys)
    of_head = max(1, keys * max(dim, group))  # K in fp32, or the logits of one row
    head_step = min(heads, max(1, _MOST_LOGITS // of_head))
    batch_step = max(1, _MOST_LOGITS // (of_head * heads))
    row_step = max(1, _MOST_LOGITS // max(1, min(batch, batch_step) * head_step * group * keys))

    def of_rows(b: slice, h: slice, r: slice) -> Rows:
        of_group = slice(h.start * group, h.stop * group)
        first, end = _keys_of(r, options.offset(rows, keys), options, keys)
        if isinstance(attn_mask, LocalBias):
            part = attn_mask.mask(b, of_group, r, slice(first, end), keys - rows, query.device)
            bias = part.expand(-1, of_group.stop - of_group.start, -1, -1)
        else:
            bias = None if attn_mask is None else attn_mask[b, of_group, r, first:end]
        k, v = key[b, h, first:end], value[b, h, first:end]
        sinks = None if options.sinks is None else options.sinks[of_group]
        visible = _visible(r, first, end, options.offset(rows, keys), options, query.device)
        return _rows(query[b, of_group, r], k, v, visible, bias, dropout_p, sinks, options)

    return _cat(
        0,
        (
            _cat(1, (_cat(2, (of_rows(b, h, r) for r in _steps(rows, row_step))) for h in _steps(heads, head_step)))
            for b in _steps(batch, batch_step)
        ),
    )


def _rows(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    visible: Tensor | None,
    bias: Tensor | None,
    dropout_p: float,
    sinks: Tensor | None,
    options: Options,
) -> Rows:
    """Some rows of some heads: query [b, heads * group, r, d], key [b, heads, n, d], visible [r, n]."""
    exact = torch.float64 if query.dtype is torch.float64 else torch.float32
    heads, group = key.shape[1], query.shape[1] // key.shape[1]
    scale = 1 / math.sqrt(query.shape[-1]) if options.scale is None else options.scale
    grouped = (query.to(exact) * scale).unflatten(1, (heads, group)).flatten(2, 3)
    logits = (grouped @ key.to(exact).transpose(-1, -2)).unflatten(2, (group, query.shape[2]))
    if options.softcap:
        logits = options.softcap * torch.tanh(logits / options.softcap)
    if visible is not None:
        logits = logits.masked_fill(~visible, -math.inf)
    if bias is not None:
        bias = bias.unflatten(1, (heads, group))
        logits = logits.masked_fill(~bias, -math.inf) if bias.dtype is torch.bool else logits + bias
    lse = _logsumexp(logits)
    if sinks is not None:
        lse = torch.logaddexp(lse, sinks.to(exact).view(heads, group, 1).expand_as(lse))
    # A row that sees no key: its weights are exp(-inf - 0), not exp(-inf + inf).
    weights = torch.exp(logits - lse.masked_fill(lse == -math.inf, 0.0).unsqueeze(-1))
    if dropout_p:
        weights = F.dropout(weights, dropout_p)
    out = (weights.flatten(2, 3) @ value.to(exact)).unflatten(2, (group, query.shape[2])).flatten(1, 2)
    return out.to(query.dtype), lse.flatten(1, 2).float()


def _logsumexp(logits: Tensor) -> Tensor:
    """Over the last dimension. A row that sees no key has the gradient 0, not torch's NaN."""
    if not logits.requires_grad:
        return logits.logsumexp(-1)
    blind = (logits == -math.inf).all(-1)
    return logits.masked_fill(blind.unsqueeze(-1), 0.0).logsumexp(-1).masked_fill(blind, -math.inf)


def _keys_of(rows: slice, offset: int, options: Options, keys: int) -> tuple[int, int]:
    """The first key that one of `rows` sees, and the end of those keys."""
    if options.causal is None:
        return 0, keys
    end = min(max(0, rows.stop + offset), keys)
    first = 0 if options.window is None else max(0, rows.start + offset - options.window + 1)
    return min(first, end), end


def _visible(rows: slice, first: int, end: int, offset: int, options: Options, device: torch.device) -> Tensor | None:
    """bool [rows, end - first]: which keys each row sees; None: all."""
    if options.causal is None:
        return None
    last = torch.arange(rows.start + offset, rows.stop + offset, device=device).unsqueeze(-1)
    key = torch.arange(first, end, device=device)
    return key <= last if options.window is None else (key <= last) & (key > last - options.window)


def visible_keys(options: Options, rows: int, keys: int, device: torch.device) -> Tensor | None:
    """bool [rows, keys]: which keys each row sees; None: all."""
    return _visible(slice(0, rows), 0, keys, options.offset(rows, keys), options, device)


def _steps(size: int, step: int) -> Iterator[slice]:
    """Of a dimension; one empty slice when it is empty."""
    for start in range(0, max(1, size), step):
        yield slice(start, min(start + step, size))


def _cat(dim: int, parts: Iterable[Rows]) -> Rows:
    outs, lses = zip(*parts, strict=True)
    if len(outs) == 1:
        return outs[0], lses[0]
    return torch.cat(outs, dim), torch.cat(lses, dim)
