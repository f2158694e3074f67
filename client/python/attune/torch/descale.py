"""FlashAttention 3's k_descale and v_descale, which are attune's k_scale and v_scale."""

from __future__ import annotations

import torch
from torch import Tensor

from attune.errors import InvalidArgument
from attune.torch.problem_of_tensors import KV_DTYPES


def scales_of(
    what: str, q: Tensor, k: Tensor, batch: int, k_descale: Tensor | None, v_descale: Tensor | None
) -> dict[str, Tensor | None]:
    """k_scale and v_scale of k [..., heads_k, head_dim]; none unless it is of 8 bits, as FlashAttention 3 has it, and 1
    where one is not given."""
    if q.dtype in KV_DTYPES:
        raise InvalidArgument(f"{what}: q has dtype {q.dtype}; it must be of 16 bits, keys and values may have 8")
    if k.dtype not in KV_DTYPES:
        return {}
    heads = k.shape[-2]
    shapes = ((batch, heads), (heads,), ())
    found: dict[str, Tensor | None] = {}
    for name, given in (("k", k_descale), ("v", v_descale)):
        scale = torch.ones((), device=q.device) if given is None else given
        if not isinstance(scale, Tensor):
            raise InvalidArgument(f"{what}: {name}_descale is of type {type(scale).__name__}; it must be a tensor")
        if scale.dtype is not torch.float32 or tuple(scale.shape) not in shapes or scale.device != q.device:
            raise InvalidArgument(
                f"{what}: {name}_descale has shape {tuple(scale.shape)} and dtype {scale.dtype}, on {scale.device}; it "
                f"must have {shapes[0]}, {shapes[1]} or () and torch.float32, on {q.device}"
            )
        found[f"{name}_scale"] = scale
    return found


def check_new(what: str, cache: Tensor, new: Tensor, rotary_cos: Tensor | None) -> None:
    """Raises InvalidArgument for keys or values that are not what an 8-bit cache holds."""
    if cache.dtype not in KV_DTYPES:
        return
    if new.dtype is not cache.dtype:
        raise InvalidArgument(
            f"{what}: k or v has dtype {new.dtype}; the cache's is {cache.dtype}, and what is appended must have it: "
            "attune.quantize_kv(..., scale=...)"
        )
    if rotary_cos is not None:
        raise InvalidArgument(f"{what}: rotary_cos is given and the cache has dtype {cache.dtype}; rotate k before")
