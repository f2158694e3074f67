"""FlashAttention's K/V cache: read as pages, appended to in place, its new keys and the queries rotated."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from attune.errors import InvalidArgument

_LARGEST_PAGE = 256  # that a contiguous cache is read in
_SMALLEST_PAGE = 16


def as_pages(
    what: str,
    batch: int,
    k_cache: Tensor,
    v_cache: Tensor,
    cache_batch_idx: Tensor | None,
    cache_leftpad: Tensor | None,
) -> tuple[tuple[Tensor, Tensor], Tensor]:
    """A contiguous cache as pages, and the block table that goes with them. With cache_leftpad [batch] pages have one
    key, so that a sequence may begin at any."""
    for name, cache in (("k_cache", k_cache), ("v_cache", v_cache)):
        if not cache.is_contiguous():
            raise InvalidArgument(f"{what}: {name} is non-contiguous, with strides {cache.stride()}; it is not copied")
    length = k_cache.shape[1]
    page = math.gcd(length, _LARGEST_PAGE)
    page = page if page >= _SMALLEST_PAGE else max(1, length)
    if cache_leftpad is not None:
        page = 1
    count = length // page
    shapes = ((-1 if length else 0, page, *cache.shape[2:]) for cache in (k_cache, v_cache))
    pages = [cache.view(shape) for cache, shape in zip((k_cache, v_cache), shapes, strict=True)]
    if cache_batch_idx is None:
        if k_cache.shape[0] < batch:
            raise InvalidArgument(f"{what}: batch is {batch}; it must be at most batch_cache, {k_cache.shape[0]}")
        rows = torch.arange(batch, dtype=torch.int32, device=k_cache.device)
    else:
        rows = cache_batch_idx.int()
    columns = torch.arange(count, dtype=torch.int32, device=k_cache.device).unsqueeze(0)
    if cache_leftpad is not None:
        columns = (columns + cache_leftpad.int().unsqueeze(-1)).clamp(max=max(0, count - 1))
    return (pages[0], pages[1]), rows.unsqueeze(-1) * count + columns


def append(pages: tuple[Tensor, Tensor], new: tuple[Tensor, Tensor], block_table: Tensor, lengths: Tensor) -> Tensor:
    """Writes `new` [batch, seqlen_new, heads, headdim] behind the keys there; returns the lengths afterwards."""
    count, page_size = new[0].shape[1], pages[0].shape[1]
    at = positions(lengths, count)
    page = block_table.long().gather(1, at // page_size)
    for cache, rows in zip(pages, new, strict=True):
        cache[page, at % page_size] = rows.to(cache.dtype)
    return lengths + count


def positions(lengths: Tensor, count: int) -> Tensor:
    """int64 [batch, count]: of the rows behind `lengths` keys."""
    return lengths.long().unsqueeze(-1) + torch.arange(count, device=lengths.device)


def rotated(tensor: Tensor, cos: Tensor, sin: Tensor, at: Tensor, interleaved: bool) -> Tensor:
    """tensor [batch, rows, heads, headdim] with its first 2 * cos.shape[1] dimensions rotated by the angles of the
    positions at, int64 [batch, rows or 1]; computed in fp32 (fp64 of fp64).

    cos, sin: [positions, pairs]. Pairs are the dimensions 2 i and 2 i + 1 when interleaved, else i and i + pairs."""
    exact = torch.float64 if tensor.dtype is torch.float64 else torch.float32
    cos, sin = (table[at].to(exact).unsqueeze(2) for table in (cos, sin))
    size = 2 * cos.shape[-1]
    turned, rest = tensor[..., :size].to(exact), tensor[..., size:]
    x, y = (turned[..., ::2], turned[..., 1::2]) if interleaved else turned.chunk(2, -1)
    both = (x * cos - y * sin, x * sin + y * cos)
    turned = torch.stack(both, -1).flatten(-2) if interleaved else torch.cat(both, -1)
    return torch.cat([turned.to(tensor.dtype), rest], -1)
