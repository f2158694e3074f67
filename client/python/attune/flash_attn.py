"""FlashAttention 2's functions, so that code written for them runs on attune's kernels by changing an import:

    from attune.flash_attn import flash_attn_func, flash_attn_varlen_func, flash_attn_with_kvcache

Arguments, layouts and results are FlashAttention's. attune.attention and its siblings compute, and fall back as they
do: each reason gives one AttuneWarning and is counted. What neither a kernel nor a fallback computes is an
InvalidArgument.
`deterministic` and `num_splits` are accepted and ignored: the served variant decides how the keys are split.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.compiler import is_dynamo_compiling

from attune.errors import InvalidArgument
from attune.torch.dispatch import attend_options
from attune.torch.fallback import current_stats
from attune.torch.options import integer, options_of
from attune.torch.varlen import attention_paged, attention_varlen

__all__ = ["flash_attn_func", "flash_attn_varlen_func", "flash_attn_with_kvcache"]

_LARGEST_PAGE = 256  # that a contiguous cache is read in
_SMALLEST_PAGE = 16


def flash_attn_func(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: Tensor | None = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
) -> Any:
    """Attention of q [batch, seqlen_q, nheads, headdim] to k and v [batch, seqlen_k, nheads_k, headdim], nheads a
    multiple of nheads_k.

    causal is bottom-right: row i sees the keys j <= i + seqlen_k - seqlen_q. window_size (left, right): row i sees the
    keys from i + seqlen_k - seqlen_q - left to i + seqlen_k - seqlen_q + right; -1 is no limit, causal is right = 0.
    softcap as in attune.attention. alibi_slopes: fp32 [nheads] or [batch, nheads]; the logits get
    -slope * |i + seqlen_k - seqlen_q - j|. A row that sees no key is 0.

    Returns [batch, seqlen_q, nheads, headdim], contiguous; with return_attn_probs (out, softmax_lse, None), softmax_lse
    fp32 [batch, nheads, seqlen_q]. A window with keys after the diagonal, or with causal=False of keys before it alone,
    alibi_slopes, dropout and gradients are computed by unfused attention in torch, or by SDPA.
    """
    what = "flash_attn_func"
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        _check_dims(what, name, tensor, 4, "[batch, seqlen, heads, headdim]")
    rows, keys = q.shape[1], k.shape[1]
    left, right = _window(what, window_size, causal, rows, keys)
    mask = None
    if alibi_slopes is not None or right not in (-1, 0) or (right == -1 and left >= 0):
        mask = _bias(what, q, rows, keys, left, right, alibi_slopes)
        left = right = -1
    options = options_of(False, *_causal(left, right), softcap, None, return_attn_probs, softmax_scale, True)
    stats = None if is_dynamo_compiling() else current_stats()
    result = attend_options(stats, q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), mask, dropout_p, options)
    if not return_attn_probs:
        return result.transpose(1, 2).contiguous()
    return result[0].transpose(1, 2).contiguous(), result[1], None


def flash_attn_varlen_func(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    cu_seqlens_q: Tensor,
    cu_seqlens_k: Tensor,
    max_seqlen_q: int,
    max_seqlen_k: int,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: Tensor | None = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
    block_table: Tensor | None = None,
) -> Any:
    """flash_attn_func of packed sequences: q [total_q, nheads, headdim], k and v [total_k, nheads_k, headdim], sequence
    b the rows cu_seqlens[b] to cu_seqlens[b + 1], int32 [batch + 1].

    With block_table, int32 [batch, width], k and v are pages [pages, page_size, nheads_k, headdim], as those of
    flash_attn_with_kvcache. Returns [total_q, nheads, headdim]; with return_attn_probs (out, softmax_lse, None),
    softmax_lse fp32 [nheads, total_q].

    Raises InvalidArgument for dropout, alibi_slopes and windows that are not causal.
    """
    what = "flash_attn_varlen_func"
    _refuse(what, "dropout_p", dropout_p, dropout_p == 0.0, "0")
    _refuse(what, "alibi_slopes", "given", alibi_slopes is None, "None")
    mask = _causal_window(what, window_size, causal, max_seqlen_q, max_seqlen_k)
    options = {
        "causal": mask[0],
        "window": mask[1],
        "softcap": softcap,
        "scale": softmax_scale,
        "return_lse": return_attn_probs,
        "enable_gqa": True,
    }
    if block_table is None:
        result = attention_varlen(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, **options)
    else:
        _check_dims(what, "cu_seqlens_k", cu_seqlens_k, 1, "[batch + 1]")
        used = cu_seqlens_k.diff()
        result = attention_paged(
            q, k, v, block_table, used, cu_seqlens_q=cu_seqlens_q, max_seqlen_q=max_seqlen_q, **options
        )
    return (*result, None) if return_attn_probs else result


def flash_attn_with_kvcache(
    q: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    k: Tensor | None = None,
    v: Tensor | None = None,
    rotary_cos: Tensor | None = None,
    rotary_sin: Tensor | None = None,
    cache_seqlens: int | Tensor | None = None,
    cache_batch_idx: Tensor | None = None,
    cache_leftpad: Tensor | None = None,
    block_table: Tensor | None = None,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    rotary_interleaved: bool = True,
    alibi_slopes: Tensor | None = None,
    num_splits: int = 0,
    return_softmax_lse: bool = False,
) -> Any:
    """Attention of q [batch, seqlen_q, nheads, headdim] to a cache, for inference.

    k_cache, v_cache: [batch_cache, seqlen_cache, nheads_k, headdim], row cache_batch_idx[b] (int32 [batch]; b without
    it) sequence b's; or, with block_table (int32 [batch, width]), pages [pages, page_size, nheads_k, headdim]. All are
    contiguous. cache_seqlens: int32 [batch], or one length for all, how many keys are in the cache; without it all are.
    k, v: [batch, seqlen_new, nheads_k, headdim], written into the cache, in place, behind the keys that are there, and
    then seen; they need cache_seqlens, which is not changed. causal and window_size are flash_attn_func's, each
    sequence's own.

    Returns [batch, seqlen_q, nheads, headdim]; with return_softmax_lse also fp32 [batch, nheads, seqlen_q]. Nothing
    waits for the device: a CUDA graph may capture the call. A contiguous cache is read as pages, of up to 256 keys. The
    lengths are not checked.

    Raises InvalidArgument for rotary_cos and rotary_sin, cache_leftpad, alibi_slopes and windows that are not causal.
    """
    what = "flash_attn_with_kvcache"
    for name, value in (
        *(("rotary_cos", rotary_cos), ("rotary_sin", rotary_sin)),
        *(("cache_leftpad", cache_leftpad), ("alibi_slopes", alibi_slopes)),
    ):
        _refuse(what, name, "given", value is None, "None")
    for name, tensor in (("q", q), ("k_cache", k_cache), ("v_cache", v_cache)):
        _check_dims(what, name, tensor, 4, "4 dimensions")
    if (k is None) != (v is None):
        raise InvalidArgument(f"{what}: {'v' if v is None else 'k'} is None; k and v must both be given, or neither")
    if k is not None and cache_seqlens is None:
        raise InvalidArgument(f"{what}: cache_seqlens is None; k and v need it, to be written behind")
    if block_table is not None and cache_batch_idx is not None:
        raise InvalidArgument(f"{what}: cache_batch_idx and block_table are both given; give one of them")
    batch, rows = q.shape[0], q.shape[1]
    pages = (k_cache, v_cache)
    if block_table is None:
        length = k_cache.shape[1]
        pages, block_table = _as_pages(what, batch, k_cache, v_cache, cache_batch_idx)
    else:
        _check_dims(what, "block_table", block_table, 2, "[batch, width]")
        length = block_table.shape[1] * k_cache.shape[1]
    lengths = _lengths(what, cache_seqlens, batch, length, q.device)
    if k is not None and v is not None:
        for name, tensor in (("k", k), ("v", v)):
            _check_dims(what, name, tensor, 4, "[batch, seqlen_new, heads, headdim]")
        lengths = _append(pages, (k, v), block_table, lengths)
    mask, window = _causal_window(what, window_size, causal, rows, length)
    return attention_paged(
        q,
        *pages,
        block_table,
        lengths,
        causal=mask,
        window=window,
        softcap=softcap,
        scale=softmax_scale,
        return_lse=return_softmax_lse,
        enable_gqa=True,
    )


def _refuse(what: str, name: str, value: object, right: bool, allowed: str) -> None:
    if not right:
        raise InvalidArgument(f"{what}: {name} is {value}; attune computes {allowed} only")


def _check_dims(what: str, name: str, tensor: object, dims: int, shape: str) -> None:
    if not isinstance(tensor, Tensor):
        raise InvalidArgument(f"{what}: {name} is of type {type(tensor).__name__}; it must be a tensor")
    if tensor.dim() != dims:
        raise InvalidArgument(f"{what}: {name} has shape {tuple(tensor.shape)}; it must be {shape}")


def _window(what: str, window_size: tuple[int, int], causal: bool, rows: int, keys: int) -> tuple[int, int]:
    """(left, right), -1 where it hides no key."""
    try:
        left, right = (integer(side) for side in window_size)
    except (TypeError, ValueError):
        left = right = None
    if left is None or right is None or left < -1 or right < -1:
        raise InvalidArgument(f"{what}: window_size is {window_size!r}; it must be (left, right), each -1 or more")
    left = -1 if left >= keys - 1 else left
    if causal:
        return left, 0
    return left, -1 if right >= max(1, rows - 1) else right


def _causal(left: int, right: int) -> tuple[str | None, int | None]:
    """attune's `causal` and `window`, of a window that ends at the diagonal or has no limits."""
    return (None, None) if right == -1 else ("bottom-right", None if left == -1 else left + 1)


def _causal_window(
    what: str, window_size: tuple[int, int], causal: bool, rows: int, keys: int
) -> tuple[str | None, int | None]:
    left, right = _window(what, window_size, causal, rows, keys)
    right_one = right == 0 or (left, right) == (-1, -1)
    _refuse(what, "window_size", window_size, right_one, "(left, 0), (left, -1) with causal=True and (-1, -1)")
    return _causal(left, right)


def _bias(what: str, q: Tensor, rows: int, keys: int, left: int, right: int, alibi_slopes: Tensor | None) -> Tensor:
    """attn_mask [1 or batch, 1 or heads, rows, keys]: bool, or fp32 that is added to the logits."""
    row = torch.arange(rows, device=q.device).unsqueeze(-1) + (keys - rows)
    distance = row - torch.arange(keys, device=q.device)  # 0 on the diagonal, positive before it
    visible = torch.ones_like(distance, dtype=torch.bool)
    if left >= 0:
        visible &= distance <= left
    if right >= 0:
        visible &= distance >= -right
    if alibi_slopes is None:
        return visible[None, None]
    batch, heads = q.shape[0], q.shape[2]
    if alibi_slopes.shape not in ((heads,), (batch, heads)):
        given = tuple(alibi_slopes.shape)
        raise InvalidArgument(f"{what}: alibi_slopes has shape {given}; it must be {(heads,)} or {(batch, heads)}")
    bias = -alibi_slopes.float().reshape(-1, heads, 1, 1) * distance.abs()
    return bias.masked_fill(~visible, -math.inf)


def _as_pages(
    what: str, batch: int, k_cache: Tensor, v_cache: Tensor, cache_batch_idx: Tensor | None
) -> tuple[tuple[Tensor, Tensor], Tensor]:
    """A contiguous cache as pages, and the block table that goes with them."""
    for name, cache in (("k_cache", k_cache), ("v_cache", v_cache)):
        if not cache.is_contiguous():
            raise InvalidArgument(f"{what}: {name} is non-contiguous, with strides {cache.stride()}; it is not copied")
    length = k_cache.shape[1]
    page = math.gcd(length, _LARGEST_PAGE)
    page = page if page >= _SMALLEST_PAGE else max(1, length)
    count = length // page
    shapes = ((-1 if length else 0, page, *cache.shape[2:]) for cache in (k_cache, v_cache))
    pages = [cache.view(shape) for cache, shape in zip((k_cache, v_cache), shapes, strict=True)]
    if cache_batch_idx is None:
        _refuse(what, "batch", batch, k_cache.shape[0] >= batch, f"at most batch_cache, {k_cache.shape[0]},")
        rows = torch.arange(batch, dtype=torch.int32, device=k_cache.device)
    else:
        _check_dims(what, "cache_batch_idx", cache_batch_idx, 1, "[batch]")
        rows = cache_batch_idx.int()
    table = rows.unsqueeze(-1) * count + torch.arange(count, dtype=torch.int32, device=k_cache.device)
    return (pages[0], pages[1]), table


def _lengths(what: str, given: int | Tensor | None, batch: int, most: int, device: torch.device) -> Tensor:
    if isinstance(given, Tensor):
        return given
    length = most if given is None else integer(given)
    if length is None or not 0 <= length <= most:
        raise InvalidArgument(f"{what}: cache_seqlens is {given!r}; it must be int32 [batch], or 0 to {most}")
    return torch.full((batch,), length, dtype=torch.int32, device=device)


def _append(pages: tuple[Tensor, Tensor], new: tuple[Tensor, Tensor], block_table: Tensor, lengths: Tensor) -> Tensor:
    """Writes `new` behind the keys that are there; returns the lengths afterwards."""
    count, page_size = new[0].shape[1], pages[0].shape[1]
    at = lengths.long().unsqueeze(-1) + torch.arange(count, device=lengths.device)
    page = block_table.long().gather(1, at // page_size)
    for cache, rows in zip(pages, new, strict=True):
        cache[page, at % page_size] = rows.to(cache.dtype)
    return lengths + count
