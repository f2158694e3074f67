"""attune.attention with more than SDPA's arguments."""

from __future__ import annotations

import torch
from torch import Tensor

from attune.cuda.strides import Placement
from attune.problem import Problem
from attune.torch.call import AttentionCall, ExtraTensors
from attune.torch.fallback import Reason, by_torch
from attune.torch.local_bias import LocalBias
from attune.torch.options import Options
from attune.torch.problem_of_tensors import (
    DTYPES,
    check_strides,
    layout_for,
    layout_of,
    new_output,
    not_empty,
    placement_of,
)
from attune.torch.unfused import unfused_attention, visible_keys

_LARGEST_MASK = 1 << 26  # elements of a mask that is made for SDPA


def signature_of(
    query: Tensor, key: Tensor, value: Tensor, options: Options, masked: bool = False, dropout_p: float = 0.0
) -> tuple:
    """DenseCall.signature, of tensors with heads."""
    shapes = query.shape, key.shape, value.shape
    # Asking three times whether strides are plain is cheaper than asking once what they are.
    if not (query.is_contiguous() and key.is_contiguous() and value.is_contiguous()):
        shapes = (*shapes, query.stride(), key.stride(), value.stride())
    return (
        *("dense", shapes, query.dtype, key.dtype, value.dtype),
        *(query.get_device(), key.get_device(), value.get_device()),
        *(masked, dropout_p, *options.signature()),
    )


class DenseCall(AttentionCall):
    """[batch, heads, length, head_dim], or all without the heads."""

    what = "attune.attention"
    otherwise = "torch's SDPA or, where that has no such argument, unfused attention in torch"
    frames = 4

    def __init__(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        options: Options,
        attn_mask: Tensor | LocalBias | None = None,
        dropout_p: float = 0.0,
        out: Tensor | None = None,
    ) -> None:
        self.without_heads = query.dim() == key.dim() == value.dim() == 3
        if self.without_heads:
            query, key, value = query.unsqueeze(1), key.unsqueeze(1), value.unsqueeze(1)
            out = None if out is None else out.unsqueeze(1)
            if isinstance(attn_mask, Tensor) and attn_mask.dim() == 3:
                attn_mask = attn_mask.unsqueeze(1)
        self.query, self.key, self.value = query, key, value
        self.options = options
        self.attn_mask = attn_mask
        self.dropout_p = dropout_p
        self.out = out
        self.extra = ExtraTensors(options.sinks, **options.scales())

    def signature(self) -> tuple:
        masked = self.attn_mask is not None
        return signature_of(self.query, self.key, self.value, self.options, masked, self.dropout_p)

    def check(self) -> None:
        shapes = "[batch, heads, length, head_dim], or all without the heads, of one batch and head_dim"
        self.check_values(4, 4, same_batch=True, shapes=shapes)
        self.check_heads(self.query.shape[1], self.key.shape[1])
        self.check_sinks(self.query.shape[1])
        self.check_scales(self.key.shape[0], self.key.shape[1])

    def refusal(self) -> tuple[Reason, str] | None:
        if self.attn_mask is not None:
            return Reason.MASK, "attn_mask is given; only causal masks and windows are computed"
        if self.dropout_p != 0.0:
            return Reason.DROPOUT, f"dropout_p is {self.dropout_p}; only 0 is computed"
        if self._mask() is None:
            return Reason.WINDOW, f"window is {self.options.window}, top-left; with other lengths it is bottom-right"
        return self.refusal_of_values()

    def problem(self) -> Problem:
        batch, heads_q, seq_q, head_dim = self.query.shape
        return Problem(
            batch=batch,
            heads_q=heads_q,
            heads_kv=not_empty("heads_kv", self.key.shape[1]),
            seq_q=seq_q,
            seq_kv=not_empty("seq_kv", self.key.shape[2]),
            head_dim=head_dim,
            dtype=DTYPES[self.query.dtype],
            mask=self._mask() or "none",
            window=self.options.window or 0,
            softcap=self.options.softcap,
            layout=self._layout(),
            lse=self.options.return_lse,
            sinks=self.options.sinks is not None,
            kv_dtype=self.kv_dtype(),
        )

    def placement(self, out: Tensor) -> Placement | None:
        of_scales = self.options.spacing_of_scales()
        if not of_scales and layout_of(self.query, self.key, self.value, out) is not None:
            return None
        check_strides(self.query, self.key, self.value, out)
        return (*placement_of(self.query, self.key, self.value, out), *of_scales)

    def outputs(self) -> tuple[Tensor, Tensor | None]:
        lse = None
        if self.options.return_lse:
            lse = torch.empty(self.query.shape[:3], dtype=torch.float32, device=self.query.device)
        return new_output(self.query) if self.out is None else self.out, lse

    def compute(self) -> tuple[Tensor, Tensor | None]:
        """By SDPA where it has the arguments and every row sees a key, which it may not do without."""
        options = self.options
        rows, keys = self.query.shape[2], self.key.shape[2]
        key, value = self.in_dtype_of_query(self.key, self.value)
        if self.attn_mask is None and options.is_sdpas():
            given = {"is_causal": options.causal is not None, "scale": options.scale, "enable_gqa": options.enable_gqa}
            return by_torch(self.query, key, value, dropout_p=self.dropout_p, **given), None
        if (
            self.attn_mask is None
            and not (options.softcap or options.return_lse)
            and options.sinks is None
            and 0 not in (*self.query.shape[:3], keys)
            and options.offset(rows, keys) >= 0
            and (options.window is None or rows + options.offset(rows, keys) - options.window < keys)
            and self.query.shape[1] == self.key.shape[1]  # with a mask, SDPA has no kernel for fewer heads
            and rows * keys <= _LARGEST_MASK
        ):
            mask = visible_keys(options, rows, keys, self.query.device)
            given = (self.query, key, value, mask, self.dropout_p)
            return by_torch(*given, scale=options.scale), None
        return unfused_attention(self.query, key, value, options, self.attn_mask, self.dropout_p)

    def shaped(self, result: Tensor) -> Tensor:
        return result.squeeze(1) if self.without_heads else result

    def _mask(self) -> str | None:
        return self.options.mask(self.query.shape[2] == self.key.shape[2])

    def _layout(self) -> str:
        if self.is_padded():
            return "bhsd"
        return layout_of(self.query, self.key, self.value) or layout_for(self.query, self.key)
