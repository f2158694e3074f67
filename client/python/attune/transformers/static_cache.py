"""Attention to a cache of fixed size, of whose keys only the first are there: how many, the device alone knows. To
kernels it is a paged cache with a page for each sequence."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.compiler import is_compiling

from attune.torch import direct
from attune.torch.dispatch import attend_call, computed
from attune.torch.fallback import current_stats
from attune.torch.operator import laid_out, operator
from attune.torch.options import Options
from attune.torch.problem_of_tensors import new_output
from attune.torch.unfused import unfused_attention
from attune.torch.varlen_calls import PagedCall
from attune.transformers.masked import by_sdpa


class StaticCall(PagedCall):
    """Of [batch, heads, length, head_dim]; by SDPA with `mask` where no kernel computes it and SDPA can."""

    what = "attune.transformers"
    otherwise = "transformers' SDPA, or unfused attention in torch with softcap or sinks"

    def __init__(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor,
        pages: Tensor,
        options: Options,
        dropout: float,
    ) -> None:
        rows_first = query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2)
        used, numbers = pages
        super().__init__(*rows_first, numbers.unsqueeze(1), used, None, None, options, dropout_p=dropout)
        self.mask = mask

    def check_memory(self) -> None:
        """The cache is transformers': where it lies is no mistake of the caller's."""

    def compute(self) -> tuple[Tensor, Tensor | None]:
        query, key, value = (tensor.transpose(1, 2) for tensor in (self.query, self.key, self.value))
        options = self.options
        if options.softcap or options.sinks is not None:
            out, _ = unfused_attention(query, key, value, options._replace(causal=None), self.mask, self.dropout_p)
        else:
            out = by_sdpa(query, key, value, self.mask, self.dropout_p, options.scale)
        return out.transpose(1, 2), None


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor,
    pages: Tensor,
    dropout: float,
    softcap: float,
    sinks: Tensor | None,
    scale: float | None,
) -> Tensor:
    """`mask` lets rows see what `pages` says (masks.Visible)."""
    causal = None if query.shape[2] == 1 else "bottom-right"
    options = Options(causal, None, softcap, sinks, scale=scale, enable_gqa=query.shape[1] != key.shape[1])
    call = StaticCall(query, key, value, mask, pages, options, dropout)
    if is_compiling():
        needs_grad = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in call.tensors())
        if needs_grad or call.refusal() is not None:
            return computed(call).transpose(1, 2)
        return torch.ops.attune.attention_static_cache(query, key, value, mask, pages, softcap, sinks, scale)
    stats, found, given = current_stats(), None, (False, *options[:3], *options[4:7])
    if not dropout:
        numbers = call.extra.block_table, call.extra.seqused_k, None, None
        found, known = direct.paged(stats, call.query, call.key, call.value, numbers, sinks, given)
        if isinstance(known, Tensor):
            return known.transpose(1, 2)
    result = attend_call(stats, call)
    direct.remember_call(found, given, call, call.query, result)
    return result.transpose(1, 2)


@operator(lambda query, *others: new_output(query))
def attention_static_cache(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor,
    pages: Tensor,
    softcap: float,
    sinks: Tensor | None,
    scale: float | None,
) -> Tensor:
    """`attend` in torch's graphs, without dropout."""
    return laid_out(attend(query, key, value, mask, pages, 0.0, softcap, sinks, scale), query)
