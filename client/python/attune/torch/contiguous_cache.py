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
    """A cache [batch_cache, length, heads, headdim] as pages, and the block table that goes with them. It may be
    a slice of a longer one. With cache_leftpad [batch] pages have one key, so that a sequence may begin at any."""
    length = k_cache.shape[1]
    apart = _rows_apart(what, "k_cache", k_cache)
    if _rows_apart(what, "v_cache", v_cache) != apart:
        raise InvalidArgument(
            f"{what}: k_cache has strides {k_cache.stride()} and v_cache {v_cache.stride()}; their sequences "
            "must be as many rows apart"
        )
    page = math.gcd(length, apart, _LARGEST_PAGE)
    if page < _SMALLEST_PAGE:
        page = length if 0 < length <= _LARGEST_PAGE and apart % length == 0 else 1
    if cache_leftpad is not None:
        page = 1
    count, pages_apart = length // page, apart // page
    total = (k_cache.shape[0] - 1) * pages_apart + count if length else 0
    pages = [_as_pages(cache, total, page) for cache in (k_cache, v_cache)]
    if cache_batch_idx is None:
        if k_cache.shape[0] < batch:
            raise InvalidArgument(f"{what}: batch is {batch}; it must be at most batch_cache, {k_cache.shape[0]}")
        rows = torch.arange(batch, dtype=torch.int32, device=k_cache.device)
    else:
        rows = cache_batch_idx.int()
    columns = torch.arange(count, dtype=torch.int32, device=k_cache.device).unsqueeze(0)
    if cache_leftpad is not None:
        columns = (columns + cache_leftpad.int().unsqueeze(-1)).clamp(max=max(0, count - 1))
    return (pages[0], pages[1]), rows.unsqueeze(-1) * pages_apart + columns


def _rows_apart(what: str, name: str, cache: Tensor) -> int:
    """From one sequence of the cache to the next."""
    batch, row, *_ = cache.stride()
    if cache.shape[0] <= 1 or cache.shape[1] == 0:
        return cache.shape[1]
    if row == 0 or batch % row:
        raise InvalidArgument(
            f"{what}: {name} has strides {cache.stride()}; that of a sequence must be a multiple of that of a row"
        )
    return batch // row


def _as_pages(cache: Tensor, count: int, page: int) -> Tensor:
    _, row, head, one = cache.stride()
    return cache.as_strided((max(0, count), page, *cache.shape[2:]), (page * row, row, head, one))


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
