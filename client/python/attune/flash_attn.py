"""FlashAttention 2's functions, so that code written for them runs on attune's kernels by changing an import:

    from attune.flash_attn import flash_attn_func, flash_attn_varlen_func, flash_attn_with_kvcache

Arguments, layouts and results are FlashAttention's. attune.attention and its siblings compute, and fall back as they
do: each reason gives one AttuneWarning and is counted. What neither a kernel nor a fallback computes is an
InvalidArgument.
`deterministic` and `num_splits` are accepted and ignored: the served variant decides how the keys are split. With
return_attn_probs the third result, which FlashAttention fills for tests of its dropout, is None. Of FlashAttention 3's
arguments k_descale and v_descale are taken, by name.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.compiler import is_compiling, is_dynamo_compiling

from attune.errors import InvalidArgument
from attune.torch.contiguous_cache import append, as_pages, positions, rotated
from attune.torch.descale import check_new, scales_of
from attune.torch.dispatch import attend_call, attend_options, check, computed
from attune.torch.fallback import current_stats
from attune.torch.local_bias import masks_of, sides_of
from attune.torch.options import integer, options_of
from attune.torch.varlen import attention_paged, attention_varlen
from attune.torch.varlen_calls import PagedCall, VarlenCall

__all__ = [
    "flash_attn_func",
    "flash_attn_kvpacked_func",
    "flash_attn_qkvpacked_func",
    "flash_attn_varlen_func",
    "flash_attn_varlen_kvpacked_func",
    "flash_attn_varlen_qkvpacked_func",
    "flash_attn_with_kvcache",
]


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
    *,
    q_descale: Tensor | None = None,
    k_descale: Tensor | None = None,
    v_descale: Tensor | None = None,
) -> Any:
    """Attention of q [batch, seqlen_q, nheads, headdim] to k and v [batch, seqlen_k, nheads_k, headdim], nheads a
    multiple of nheads_k.

    causal is bottom-right: row i sees the keys j <= i + seqlen_k - seqlen_q. window_size (left, right): row i sees the
    keys from i + seqlen_k - seqlen_q - left to i + seqlen_k - seqlen_q + right; -1 is no limit, causal is right = 0.
    softcap as in attune.attention. alibi_slopes: fp32 [nheads] or [batch, nheads]; the logits get
    -slope * |i + seqlen_k - seqlen_q - j|. A row that sees no key is 0, its softmax_lse -inf (FlashAttention 2 has +inf
    where it does not split the keys).

    Returns [batch, seqlen_q, nheads, headdim], contiguous; with return_attn_probs (out, softmax_lse, None), softmax_lse
    fp32 [batch, nheads, seqlen_q]. A window with keys after the diagonal, or with causal=False of keys before it alone,
    alibi_slopes, dropout and gradients are computed by unfused attention in torch, or by SDPA.

    k and v may be torch.float8_e4m3fn or float8_e5m2, q of 16 bits: their elements stand for element * descale.
    k_descale, v_descale: fp32 [batch, nheads_k] of any strides, as FlashAttention 3 has them, [nheads_k] or []; None is
    1, filled in each call. They are ignored of 16-bit keys and values, and so is q_descale.
    """
    what = "flash_attn_func"
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        _check_dims(what, name, tensor, 4, "[batch, seqlen, heads, headdim]")
    rows, keys = q.shape[1], k.shape[1]
    sides = sides_of(what, window_size)
    *masks, bias = masks_of(what, sides, causal, alibi_slopes, (q.shape[0], q.shape[2]), (rows, keys))
    scales = scales_of(what, q, k, q.shape[0], k_descale, v_descale)
    options = options_of(False, *masks, softcap, None, return_attn_probs, softmax_scale, True, **scales)
    stats = None if is_dynamo_compiling() else current_stats()
    result = attend_options(stats, q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), bias, dropout_p, options)
    if not return_attn_probs:
        return result.transpose(1, 2).contiguous()
    return result[0].transpose(1, 2).contiguous(), result[1], None


def flash_attn_kvpacked_func(
    q: Tensor,
    kv: Tensor,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: Tensor | None = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
) -> Any:
    """flash_attn_func with k and v in one tensor, kv [batch, seqlen_k, 2, nheads_k, headdim]."""
    k, v = _unpacked("flash_attn_kvpacked_func", "kv", kv, 5, 2, "[batch, seqlen_k, 2, heads, headdim]")
    masks = (causal, window_size, softcap, alibi_slopes, deterministic)
    return flash_attn_func(q, k, v, dropout_p, softmax_scale, *masks, return_attn_probs)


def flash_attn_qkvpacked_func(
    qkv: Tensor,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: Tensor | None = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
) -> Any:
    """flash_attn_func with q, k and v in one tensor, qkv [batch, seqlen, 3, nheads, headdim]."""
    q, k, v = _unpacked("flash_attn_qkvpacked_func", "qkv", qkv, 5, 3, "[batch, seqlen, 3, heads, headdim]")
    masks = (causal, window_size, softcap, alibi_slopes, deterministic)
    return flash_attn_func(q, k, v, dropout_p, softmax_scale, *masks, return_attn_probs)


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
    *,
    q_descale: Tensor | None = None,
    k_descale: Tensor | None = None,
    v_descale: Tensor | None = None,
) -> Any:
    """flash_attn_func of packed sequences: q [total_q, nheads, headdim], k and v [total_k, nheads_k, headdim], sequence
    b the rows cu_seqlens[b] to cu_seqlens[b + 1], int32 [batch + 1].

    With block_table, int32 [batch, width], k and v are pages [pages, page_size, nheads_k, headdim], as those of
    flash_attn_with_kvcache. k_descale and v_descale are those of flash_attn_func. Returns [total_q, nheads, headdim];
    with return_attn_probs (out, softmax_lse, None), softmax_lse fp32 [nheads, total_q]. What flash_attn_func has
    computed without a kernel is computed by unfused attention in torch, sequence by sequence.
    """
    what = "flash_attn_varlen_func"
    _check_dims(what, "q", q, 3, "[total_q, heads, headdim]")
    _check_dims(what, "cu_seqlens_q", cu_seqlens_q, 1, "[batch + 1]")
    _check_dims(what, "cu_seqlens_k", cu_seqlens_k, 1, "[batch + 1]")
    slopes = (cu_seqlens_q.shape[0] - 1, q.shape[1])
    sides, lengths = sides_of(what, window_size), (max_seqlen_q, max_seqlen_k)
    causal_mask, window, bias = masks_of(what, sides, causal, alibi_slopes, slopes, lengths)
    options: dict[str, Any] = {
        **scales_of(what, q, k, slopes[0], k_descale, v_descale),
        "causal": causal_mask,
        "window": window,
        "softcap": softcap,
        "scale": softmax_scale,
        "return_lse": return_attn_probs,
        "enable_gqa": True,
    }
    packed = (q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k)
    used = None if block_table is None else cu_seqlens_k.diff()
    if bias is not None or dropout_p != 0.0:
        given = options_of(is_causal=False, sinks=None, **options)
        if block_table is None:
            result = _attend(VarlenCall(*packed, given, bias, dropout_p))
        else:
            result = _attend(PagedCall(q, k, v, block_table, used, cu_seqlens_q, max_seqlen_q, given, bias, dropout_p))
    elif block_table is None:
        result = attention_varlen(*packed, **options)
    else:
        bounds = {"cu_seqlens_q": cu_seqlens_q, "max_seqlen_q": max_seqlen_q}
        result = attention_paged(q, k, v, block_table, used, **bounds, **options)
    return (*result, None) if return_attn_probs else result


def flash_attn_varlen_kvpacked_func(
    q: Tensor,
    kv: Tensor,
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
) -> Any:
    """flash_attn_varlen_func with k and v in one tensor, kv [total_k, 2, nheads_k, headdim]."""
    k, v = _unpacked("flash_attn_varlen_kvpacked_func", "kv", kv, 4, 2, "[total_k, 2, heads, headdim]")
    bounds = (cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k)
    masks = (causal, window_size, softcap, alibi_slopes, deterministic)
    return flash_attn_varlen_func(q, k, v, *bounds, dropout_p, softmax_scale, *masks, return_attn_probs)


def flash_attn_varlen_qkvpacked_func(
    qkv: Tensor,
    cu_seqlens: Tensor,
    max_seqlen: int,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: Tensor | None = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
) -> Any:
    """flash_attn_varlen_func with q, k and v in one tensor, qkv [total, 3, nheads, headdim]."""
    q, k, v = _unpacked("flash_attn_varlen_qkvpacked_func", "qkv", qkv, 4, 3, "[total, 3, heads, headdim]")
    bounds = (cu_seqlens, cu_seqlens, max_seqlen, max_seqlen)
    masks = (causal, window_size, softcap, alibi_slopes, deterministic)
    return flash_attn_varlen_func(q, k, v, *bounds, dropout_p, softmax_scale, *masks, return_attn_probs)


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
    *,
    q_descale: Tensor | None = None,
    k_descale: Tensor | None = None,
    v_descale: Tensor | None = None,
) -> Any:
    """Attention of q [batch, seqlen_q, nheads, headdim] to a cache, for inference.

    k_cache, v_cache: [batch_cache, seqlen_cache, nheads_k, headdim], row cache_batch_idx[b] (int32 [batch]; b without
    it) sequence b's; or, with block_table (int32 [batch, width]), pages [pages, page_size, nheads_k, headdim]. A
    cache may be a slice of a longer one. cache_seqlens: int32 [batch], or one length for all, where the keys in the
    cache end; without it all are there. cache_leftpad: int32 [batch], where they begin: sequence b has the keys from
    cache_leftpad[b] to before cache_seqlens[b], which counts those in front, too; not with block_table.
    k, v: [batch, seqlen_new, nheads_k, headdim], written into the cache, in place, behind the keys that are there, and
    then seen; they need cache_seqlens, which is not changed. causal, window_size, alibi_slopes, k_descale and v_descale
    are those of flash_attn_func, each sequence's own. An 8-bit cache takes k and v of its own dtype, already rotated.
    rotary_cos, rotary_sin: [positions, pairs], which need k and v. The first 2 * pairs dimensions of k are rotated at
    the positions cache_seqlens, cache_seqlens + 1, ..., and so are q's where a mask tells rows apart, else at
    cache_seqlens. Pairs are neighbours, or with rotary_interleaved=False half of those dimensions apart.

    Returns [batch, seqlen_q, nheads, headdim]; with return_softmax_lse also fp32 [batch, nheads, seqlen_q]. Nothing
    waits for the device, unless torch computes: a CUDA graph may capture the call. The lengths are not checked.
    Without block_table a cache is read as pages, and theirs is the problem that the service is asked for: of as many
    keys as divide its length and the rows from one sequence to the next, at most 256. Where those are fewer than 16, a
    page is a whole sequence if such pages are one behind the other, else one key, as it is with cache_leftpad.
    """
    what = "flash_attn_with_kvcache"
    for name, tensor in (("q", q), ("k_cache", k_cache), ("v_cache", v_cache)):
        _check_dims(what, name, tensor, 4, "4 dimensions")
    _check_pair(what, "k", k, "v", v)
    _check_pair(what, "rotary_cos", rotary_cos, "rotary_sin", rotary_sin)
    if k is not None and cache_seqlens is None:
        raise InvalidArgument(f"{what}: cache_seqlens is None; k and v need it, to be written behind")
    if k is None and rotary_cos is not None:
        raise InvalidArgument(f"{what}: k is None; rotary_cos and rotary_sin need k and v")
    batch, rows, heads, _ = q.shape
    for name, vector in (("cache_batch_idx", cache_batch_idx), ("cache_leftpad", cache_leftpad)):
        if vector is None:
            continue
        _check_numbers(what, name, vector, batch, q.device)
        if block_table is not None:
            raise InvalidArgument(f"{what}: {name} and block_table are both given; give one of them")
    if block_table is None:
        length = k_cache.shape[1]
        pages, block_table = as_pages(what, batch, k_cache, v_cache, cache_batch_idx, cache_leftpad)
    else:
        _check_dims(what, "block_table", block_table, 2, "[batch, width]")
        length = block_table.shape[1] * k_cache.shape[1]
        pages = (k_cache, v_cache)
    sides = sides_of(what, window_size)
    causal_mask, window, bias = masks_of(what, sides, causal, alibi_slopes, (batch, heads), (rows, length))
    lengths = in_cache = _lengths(what, cache_seqlens, batch, length, q.device)
    if cache_leftpad is not None:
        lengths = lengths - cache_leftpad
    options: dict[str, Any] = {
        **scales_of(what, q, k_cache, batch, k_descale, v_descale),
        "causal": causal_mask,
        "window": window,
        "softcap": softcap,
        "scale": softmax_scale,
        "return_lse": return_softmax_lse,
        "enable_gqa": True,
    }
    given = options_of(is_causal=False, sinks=None, **options)
    if k is not None and v is not None:
        _check_new(what, k, v, (k_cache, v_cache), batch)
        check_new(what, k_cache, k, rotary_cos)
        check_new(what, v_cache, v, rotary_cos)
        check(PagedCall(q, *pages, block_table, lengths, None, None, given, bias))  # while the cache is as it was
        if rotary_cos is not None and rotary_sin is not None:
            _check_angles(what, rotary_cos, rotary_sin, q.shape[-1], length)
            by_row = causal or any(0 <= side < length for side in sides)
            angles = (rotary_cos, rotary_sin)
            q = rotated(q, *angles, positions(in_cache, rows if by_row else 1), rotary_interleaved)
            k = rotated(k, *angles, positions(in_cache, k.shape[1]), rotary_interleaved)
        lengths = append(pages, (k, v), block_table, lengths)
    if bias is None:
        return attention_paged(q, *pages, block_table, lengths, **options)
    return _attend(PagedCall(q, *pages, block_table, lengths, None, None, given, bias))


def _attend(call: VarlenCall | PagedCall) -> Any:
    """What no kernel computes, said and counted as such."""
    return computed(call) if is_compiling() else attend_call(current_stats(), call)


def _unpacked(what: str, name: str, packed: object, dims: int, count: int, shape: str) -> tuple[Tensor, ...]:
    """Views of the tensors in one."""
    _check_dims(what, name, packed, dims, shape)
    assert isinstance(packed, Tensor)
    if packed.shape[-3] != count:
        raise InvalidArgument(f"{what}: {name} has shape {tuple(packed.shape)}; it must be {shape}")
    return packed.unbind(-3)


def _check_dims(what: str, name: str, tensor: object, dims: int, shape: str) -> None:
    if not isinstance(tensor, Tensor):
        raise InvalidArgument(f"{what}: {name} is of type {type(tensor).__name__}; it must be a tensor")
    if tensor.dim() != dims:
        raise InvalidArgument(f"{what}: {name} has shape {tuple(tensor.shape)}; it must be {shape}")


def _check_pair(what: str, name: str, one: object, other_name: str, other: object) -> None:
    if (one is None) != (other is None):
        missing = other_name if other is None else name
        raise InvalidArgument(f"{what}: {missing} is None; {name} and {other_name} must both be given, or neither")


def _check_numbers(what: str, name: str, vector: object, batch: int, device: torch.device) -> None:
    _check_dims(what, name, vector, 1, "[batch]")
    assert isinstance(vector, Tensor)
    if vector.dtype is not torch.int32 or vector.shape[0] != batch or vector.device != device:
        given = f"has shape {tuple(vector.shape)} and dtype {vector.dtype}, on {vector.device}"
        raise InvalidArgument(f"{what}: {name} {given}; it must have {(batch,)} and torch.int32, on {device}")


def _check_new(what: str, k: Tensor, v: Tensor, caches: tuple[Tensor, Tensor], batch: int) -> None:
    for name, tensor, cache in (("k", k, caches[0]), ("v", v, caches[1])):
        _check_dims(what, name, tensor, 4, "[batch, seqlen_new, nheads_k, headdim]")
        shape = (batch, k.shape[1], *cache.shape[2:])
        if tensor.shape != shape:
            named = f"[batch, seqlen_new, nheads_k, headdim], {shape} here"
            raise InvalidArgument(f"{what}: {name} has shape {tuple(tensor.shape)}; it must be {named}")


def _check_angles(what: str, cos: Tensor, sin: Tensor, head_dim: int, length: int) -> None:
    for name, table in (("rotary_cos", cos), ("rotary_sin", sin)):
        _check_dims(what, name, table, 2, "[positions, pairs]")
    if cos.shape != sin.shape or cos.shape[0] < length or 2 * cos.shape[1] > head_dim:
        given = f"{tuple(cos.shape)} and {tuple(sin.shape)}"
        allowed = f"one [positions, pairs], at least {length} positions and at most {head_dim // 2} pairs"
        raise InvalidArgument(f"{what}: rotary_cos and rotary_sin have shapes {given}; they must have {allowed}")


def _lengths(what: str, given: int | Tensor | None, batch: int, most: int, device: torch.device) -> Tensor:
    if isinstance(given, Tensor):
        _check_numbers(what, "cache_seqlens", given, batch, device)
        return given
    length = most if given is None else integer(given)
    if length is None or not 0 <= length <= most:
        raise InvalidArgument(f"{what}: cache_seqlens is {given!r}; it must be int32 [batch], or 0 to {most}")
    return torch.full((batch,), length, dtype=torch.int32, device=device)
