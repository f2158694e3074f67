"""8-bit caches: keys or values as elements of torch.float8_e4m3fn or float8_e5m2 times fp32 scales."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from attune.errors import InvalidArgument
from attune.torch.problem_of_tensors import KV_DTYPES

_SHARED = {"tensor": (0, 1, 2, 3), "head": (0, 2, 3), "batch-head": (2, 3)}  # dimensions that have one scale


class QuantizedKv(NamedTuple):
    """What `quantize_kv` returns."""

    elements: Tensor  # like the tensor, of 8 bits
    scale: Tensor  # fp32 [], [heads_kv] or [batch, heads_kv]
    error: Tensor  # fp32 []: the root of the mean square of elements * scale - tensor, relative to the tensor's own


def quantize_kv(
    tensor: Tensor, dtype: torch.dtype = torch.float8_e4m3fn, scales: str = "head", *, scale: Tensor | None = None
) -> QuantizedKv:
    """Keys or values [batch, heads_kv, length, head_dim] in 8 bits, for attune.attention and its k_scale or v_scale.

    scales: one for the whole "tensor", one a "head" or one a "batch-head". Each is the largest magnitude that shares
    it, divided by the largest of `dtype`, so that nothing saturates; 1 where all is 0. With `scale`, fp32 and of the
    shape that `scales` says, that one is taken, and what it makes too large saturates: a cache has its scales before it
    has its tokens. `elements` lies in memory as `tensor` does, so of packed tokens or of pages give a view that has the
    heads second. NaN and infinities are not looked for. Nothing waits for the device.

    Raises InvalidArgument, naming the argument, its value and what is allowed.
    """
    if dtype not in KV_DTYPES:
        raise InvalidArgument(f"quantize_kv: dtype is {dtype}; it must be one of {', '.join(map(str, KV_DTYPES))}")
    if scales not in _SHARED:
        raise InvalidArgument(f"quantize_kv: scales is {scales!r}; it must be one of {', '.join(map(repr, _SHARED))}")
    if not isinstance(tensor, Tensor) or tensor.dim() != 4 or not tensor.dtype.is_floating_point:
        given = f"{tensor.dtype} {tuple(tensor.shape)}" if isinstance(tensor, Tensor) else type(tensor).__name__
        raise InvalidArgument(
            f"quantize_kv: tensor is {given}; it must be of a floating-point type, [batch, heads_kv, length, head_dim]"
        )
    shape = {"tensor": (), "head": (tensor.shape[1],), "batch-head": tuple(tensor.shape[:2])}[scales]
    exact = tensor.detach().float()
    largest = torch.finfo(dtype).max
    if scale is None:
        shared = _SHARED[scales]
        most = exact.abs().amax(shared) if exact.numel() else exact.new_zeros(shape)
        scale = torch.where(most == 0, torch.ones_like(most), most / largest)
    elif not isinstance(scale, Tensor) or scale.dtype is not torch.float32 or tuple(scale.shape) != shape:
        given = f"{scale.dtype} {tuple(scale.shape)}" if isinstance(scale, Tensor) else repr(scale)
        raise InvalidArgument(f"quantize_kv: scale is {given}; with scales {scales!r} it must be torch.float32 {shape}")
    of_rows = scale if scale.dim() == 0 else scale[..., None, None]
    elements = (exact / of_rows).clamp(-largest, largest).to(dtype)
    lost = elements.float() * of_rows - exact
    return QuantizedKv(elements, scale, lost.norm() / exact.norm().clamp_min(torch.finfo(torch.float32).tiny))
