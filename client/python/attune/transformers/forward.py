"""transformers' attention: attune's kernels where they compute what the mask says, else transformers' own SDPA."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.compiler import is_compiling
from transformers.integrations.sdpa_attention import create_position_bias_mask, sdpa_attention_forward
from transformers.utils import logging

from attune.torch import attention
from attune.torch.fallback import Reason, Unsuitable, blocks, current_stats, warn_once
from attune.transformers import masked, static_cache
from attune.transformers.masks import visible

_MASKED = Unsuitable(Reason.MASK, "it is neither causal nor a window, or it hides padding; only those two are computed")
_logger = logging.get_logger(__name__)


def attention_forward(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    is_causal: bool | None = None,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    position_bias: Tensor | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """As transformers' AttentionInterface has it. query: [batch, heads, seq_q, head_dim]; key and value have the heads
    of the cache. Returns [batch, seq_q, heads, head_dim] and no weights.

    s_aux are the sinks. A window is the mask's, made by attune.transformers.attention_mask; sliding_window, which
    models pass beside it, adds nothing."""
    if kwargs.get("output_attentions"):
        _logger.warning_once(
            "attune returns no attention weights: use the implementation 'eager' for output_attentions"
        )
    if is_causal is None:
        is_causal = getattr(module, "is_causal", True)
    rows = query.shape[2]
    is_causal = rows > 1 and is_causal  # in this order: the length may be a symbol
    seen = None if attention_mask is None else visible(attention_mask, rows, key.shape[2])
    if position_bias is not None or (attention_mask is not None and seen is None):
        out = _with_mask(
            module, query, key, value, attention_mask, dropout, scaling, is_causal, softcap, s_aux, position_bias
        )
    elif seen is not None and seen.pages is not None:
        given = query, key, value, attention_mask, seen.pages, dropout
        out = static_cache.attend(*given, softcap or 0.0, s_aux, scaling)
    elif seen is None or (seen.window is None and rows in (1, key.shape[2])):
        if seen is not None:
            is_causal = rows > 1
        elif is_causal and key.shape[2] > rows:  # an empty static cache is filled
            key, value = key[:, :, :rows], value[:, :, :rows]
        more = {"softcap": softcap or 0.0, "sinks": s_aux, "enable_gqa": query.shape[1] != key.shape[1]}
        out = attention(query, key, value, None, dropout, is_causal, scaling, **more)
    else:
        more = "bottom-right", seen.window, softcap or 0.0, s_aux
        out = masked.attend(query, key, value, attention_mask, dropout, *more, scaling)
    return out.transpose(1, 2).contiguous(), None


def _with_mask(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    dropout: float,
    scale: float | None,
    is_causal: bool,
    softcap: float | None,
    sinks: Tensor | None,
    position_bias: Tensor | None,
) -> Tensor:
    """Where only a mask in memory says what is visible: by transformers' SDPA, counted unless replace_sdpa counts it,
    or unfused with what SDPA does not compute."""
    if softcap is None and sinks is None:
        if not is_compiling() and not blocks.replacing:
            warn_once(_MASKED, "attune.transformers", "transformers' SDPA", frames=4)
            stats = current_stats()
            if stats is not None:
                stats.fallbacks[_MASKED.counted_as] += 1
        given = {"is_causal": is_causal, "position_bias": position_bias}
        return sdpa_attention_forward(module, query, key, value, mask, dropout, scale, **given)[0].transpose(1, 2)
    if position_bias is not None:
        mask = create_position_bias_mask(position_bias, mask, is_causal, query, key)
    more = {"softcap": softcap or 0.0, "sinks": sinks, "enable_gqa": query.shape[1] != key.shape[1]}
    return attention(query, key, value, mask, dropout, scale=scale, **more)
