"""attune::attention, the operator that torch.compile and torch.export keep in their graphs."""

from __future__ import annotations

import torch
from torch import Tensor

from attune.torch.dispatch import attend
from attune.torch.question import new_output
from attune.torch.replace import current_stats


@torch.library.custom_op("attune::attention", mutates_args=())
def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """`attune.attention` without mask and dropout, for inference. Returns a tensor as `new_output` lays it out."""
    with torch.no_grad():
        result = attend(current_stats(), query, key, value, None, 0.0, is_causal, scale, enable_gqa)
    like = new_output(query)
    # SDPA lays its result out as it likes; a graph was made for one layout.
    return result if result.stride() == like.stride() else like.copy_(result)


@attention.register_fake
def _(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    return new_output(query)
