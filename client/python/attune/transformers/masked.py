"""Attention whose mask says more than is_causal and that kernels compute without it: they are told what it lets rows
see, and only SDPA reads it."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.compiler import is_compiling
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from attune.torch import direct
from attune.torch.dense_call import DenseCall
from attune.torch.dispatch import attend_call, computed
from attune.torch.fallback import by_torch, current_stats
from attune.torch.operator import laid_out, operator
from attune.torch.options import Options
from attune.torch.problem_of_tensors import new_output


class Module(NamedTuple):
    """What transformers' SDPA asks a layer."""

    num_key_value_groups: int
    is_causal: bool = False


class MaskedCall(DenseCall):
    """By SDPA with `mask` where no kernel computes it and SDPA can."""

    what = "attune.transformers"
    otherwise = "transformers' SDPA, or unfused attention in torch with softcap or sinks"

    def __init__(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor, options: Options, dropout: float
    ) -> None:
        super().__init__(query, key, value, options, dropout_p=dropout)
        self.mask = mask

    def compute(self) -> tuple[Tensor, Tensor | None]:
        if self.options.softcap or self.options.sinks is not None:
            return super().compute()
        return by_sdpa(self.query, self.key, self.value, self.mask, self.dropout_p, self.options.scale), None


def by_sdpa(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor, dropout: float = 0.0, scale: float | None = None
) -> Tensor:
    """As transformers has SDPA compute it, which has no kernel for a mask and fewer KV heads."""
    module = Module(query.shape[1] // key.shape[1])
    out, _ = by_torch(module, query, key, value, mask, dropout, scale, through=sdpa_attention_forward)
    return out.transpose(1, 2)


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor,
    dropout: float,
    causal: str | None,
    window: int | None,
    softcap: float,
    sinks: Tensor | None,
    scale: float | None,
) -> Tensor:
    """`mask` lets rows see what `causal` and `window` say."""
    options = Options(causal, window, softcap, sinks, scale=scale, enable_gqa=query.shape[1] != key.shape[1])
    if is_compiling():
        call = MaskedCall(query, key, value, mask, options, dropout)
        needs_grad = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in call.tensors())
        if needs_grad or call.refusal() is not None:
            return computed(call)
        return torch.ops.attune.attention_masked(query, key, value, mask, causal, window, softcap, sinks, scale)
    stats = current_stats()
    given = (False, *options[:3], *options[4:7])
    found, known = (None, None) if dropout else direct.dense(stats, query, key, value, sinks, given)
    if isinstance(known, Tensor):
        return known
    call = MaskedCall(query, key, value, mask, options, dropout)
    result = attend_call(stats, call)
    direct.remember_call(found, given, call, query, result)
    return result


@operator(lambda query, *others: new_output(query))
def attention_masked(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor,
    causal: str | None,
    window: int | None,
    softcap: float,
    sinks: Tensor | None,
    scale: float | None,
) -> Tensor:
    """`attend` in torch's graphs, without dropout."""
    return laid_out(attend(query, key, value, mask, 0.0, causal, window, softcap, sinks, scale), query)
