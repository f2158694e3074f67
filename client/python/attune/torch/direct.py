"""Calls that were made before, made again: the way of nearly every call, whatever its kind. Its time is the host's part
of attention's. A call's key is all that its launch depends on but addresses, so that calls of one key are launched one
way, or are left to torch for one reason. What is not found by its key goes the way of dispatch.py, and is then
remembered.

`given` is what the caller gives of is_causal, causal, window, softcap, return_lse, scale and enable_gqa, in this order.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

import torch
from torch import OutOfMemoryError, Tensor, empty_like, get_autocast_dtype, is_autocast_enabled, is_grad_enabled
from torch._C import _cuda_getCurrentRawStream as current_stream
from torch._C import _get_deterministic_algorithms as deterministic
from torch._C import _len_torch_dispatch_stack as dispatch_modes
from torch._C._functorch import maybe_current_level as functorch_level
from torch.autograd import forward_ad
from torch.nn import Parameter

from attune.background.entry import Entry
from attune.errors import AttuneError
from attune.torch import process
from attune.torch.call import SINKS, AttentionCall
from attune.torch.fallback import Stats, Unsuitable
from attune.torch.process import direct as known
from attune.torch.sinks import in_fp32
from attune.torch.varlen_calls import rounded_up

Result = Tensor | tuple[Tensor, Tensor]
Given = tuple[object, ...]
Key = tuple[object, ...]
Kind = tuple[torch.dtype, int]  # and the device's index
# A key, None for calls that have more to them than a launch; and what its kernel computed, why it is left to torch, or
# None where it is to be looked at.
Found = tuple[Key | None, Result | Unsuitable | None]

_NOT_FOUND: Found = (None, None)
_NUMBERS = (bool, int, float, str, type(None))


def dense(
    stats: Stats | None,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    sinks: Tensor | None,
    given: Given,
    out: Tensor | None = None,
) -> Found:
    """Of [batch, heads, length, head_dim]. `out`: what is written, which is like `query`; else a new tensor. So are the
    others'."""
    try:
        kind = _kind_of(query, key, value)
        if kind is None:
            return _NOT_FOUND
        shapes = query.shape, key.shape, value.shape
        # Asking three times whether strides are plain is cheaper than asking once what they are.
        if not (query.is_contiguous() and key.is_contiguous() and value.is_contiguous()):
            shapes = (*shapes, query.stride(), key.stride(), value.stride())
    except RuntimeError:  # nested and sparse tensors have no such thing
        return _NOT_FOUND
    if sinks is None:
        found = shapes, kind, given
        return found, _again(stats, found, query, key, value, out=out)
    if not _are_usual(sinks, kind):
        return _NOT_FOUND
    found = shapes, kind, given, sinks.shape
    return found, _again(stats, found, query, key, value, (sinks.data_ptr(), 0, 0, 0, 0, 0, 0), None, sinks, out)


def varlen(
    stats: Stats | None,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    lengths: tuple[Tensor, Tensor, int, int],
    sinks: Tensor | None,
    given: Given,
    out: Tensor | None = None,
) -> Found:
    """Of [total, heads, head_dim], of any totals. `lengths`: cu_seqlens_q and _k, max_seqlen_q and _k."""
    cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k = lengths
    try:
        kind = _kind_of(query, key, value)
        if (
            kind is None
            or not _are_lengths(cu_seqlens_q, kind)
            or not (cu_seqlens_k is cu_seqlens_q or _are_lengths(cu_seqlens_k, kind))
            or not (max_seqlen_q.__class__ is max_seqlen_k.__class__ is int and max_seqlen_q >= 0 and max_seqlen_k >= 0)
            or (sinks is not None and not _are_usual(sinks, kind))
        ):
            return _NOT_FOUND
        of_keys, of_bounds = key.shape, cu_seqlens_q.shape
        if of_keys != value.shape or (cu_seqlens_k is not cu_seqlens_q and cu_seqlens_k.shape != of_bounds):
            return _NOT_FOUND
        total, heads_q, head_dim = query.shape
        _, heads_kv, head_dim_kv = of_keys
        strides = None
        if not (query.is_contiguous() and key.is_contiguous() and value.is_contiguous()):
            strides = query.stride(), key.stride(), value.stride()
    except (RuntimeError, ValueError):
        return _NOT_FOUND
    sizes = heads_q, head_dim, heads_kv, head_dim_kv, rounded_up(max_seqlen_q), rounded_up(max_seqlen_k)
    to_sinks, of_sinks = (0, None) if sinks is None else (sinks.data_ptr(), sinks.shape)
    found = "varlen", sizes, strides, of_bounds, kind, of_sinks, given
    more = to_sinks, cu_seqlens_q.data_ptr(), cu_seqlens_k.data_ptr(), 0, 0, 0, 0
    return found, _again(stats, found, query, key, value, more, (heads_q, total), sinks, out)


def paged(
    stats: Stats | None,
    query: Tensor,
    key_pages: Tensor,
    value_pages: Tensor,
    lengths: tuple[Tensor, Tensor, Tensor | None, int | None],
    sinks: Tensor | None,
    given: Given,
    out: Tensor | None = None,
) -> Found:
    """Of [batch, length, heads, head_dim] or, with cu_seqlens_q, of any number of tokens. `lengths`: block_table,
    seqused_k, cu_seqlens_q and max_seqlen_q."""
    block_table, seqused_k, cu_seqlens_q, max_seqlen_q = lengths
    try:
        kind = _kind_of(query, key_pages, value_pages)
        if (
            kind is None
            or not (_are_lengths(block_table, kind) and _are_lengths(seqused_k, kind))
            or (sinks is not None and not _are_usual(sinks, kind))
        ):
            return _NOT_FOUND
        shape, rows, bounds, to_bounds = query.shape, None, None, 0
        if cu_seqlens_q is not None:
            if (
                not _are_lengths(cu_seqlens_q, kind) or max_seqlen_q.__class__ is not int or max_seqlen_q < 0  # type: ignore[operator]
            ):
                return _NOT_FOUND
            total, *shape = shape
            shape, rows, to_bounds = tuple(shape), (shape[0], total), cu_seqlens_q.data_ptr()
            bounds = cu_seqlens_q.shape, rounded_up(max_seqlen_q)  # type: ignore[arg-type]
        elif max_seqlen_q is not None:
            return _NOT_FOUND
        numbers = key_pages.shape, value_pages.shape, block_table.shape, seqused_k.shape
        if not (query.is_contiguous() and key_pages.is_contiguous() and value_pages.is_contiguous()):
            numbers = (*numbers, query.stride(), key_pages.stride(), value_pages.stride())
    except (RuntimeError, ValueError):
        return _NOT_FOUND
    to_sinks, of_sinks = (0, None) if sinks is None else (sinks.data_ptr(), sinks.shape)
    found = "paged", shape, kind, bounds, numbers, of_sinks, given
    more = to_sinks, to_bounds, 0, seqused_k.data_ptr(), block_table.data_ptr(), 0, 0
    return found, _again(stats, found, query, key_pages, value_pages, more, rows, sinks, out)


def _again(
    stats: Stats | None,
    found: Key,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    more: tuple[int, ...] = (),
    rows: tuple[int, int] | None = None,
    sinks: Tensor | None = None,
    out: Tensor | None = None,
) -> Result | Unsuitable | None:
    """What `known` has of `found`, done again. `more` as Kernel.launch has it. `rows`: of a log-sum-exp, where that
    differs among calls of one key."""
    try:
        entry, as_found, launch, lse_like = known[found]
    except (KeyError, TypeError):  # new, or with an argument that cannot be looked up
        return None
    if (
        entry.launch is not as_found  # something else was found out meanwhile
        or (stats is not None and stats.recorder is not None)
        or (deterministic() and not (entry.pinned or entry.key is None))
    ):
        return None
    if launch is None:
        return entry.unsuitable if monotonic() < entry.due else None
    q, k, v = query.data_ptr(), key.data_ptr(), value.data_ptr()
    if (q | k | v) & 15:
        return None
    if out is None:
        out = empty_like(query)
    elif launch is not as_found:  # made for what empty_like returns
        return None
    lse, to_lse = None, 0
    if lse_like is not None:
        if rows is None or lse_like.shape == rows:
            lse = empty_like(lse_like)
        else:
            lse = query.new_empty(rows, dtype=torch.float32)
        to_lse = lse.data_ptr()
    if sinks is not None and sinks.dtype is not torch.float32:
        sinks = in_fp32(sinks)
        more = (sinks.data_ptr(), *more[1:])
    try:
        launch(q, k, v, out.data_ptr(), to_lse, current_stream(entry.device), more)
    except AttuneError:
        return None  # it is found out again, and said why
    if stats is not None:
        stats.launched += 1
    return out if lse is None else (out, lse)


def remember(
    found: Key | None,
    entry: Entry,
    as_found: Callable[..., None],
    launch: Callable[..., None],
    query: Tensor,
    out: Tensor,
    lse: Tensor | None = None,
) -> None:
    """A call of this key was computed by `launch`, which is what `entry` had, `as_found`, or that for the call's
    strides and scale."""
    if found is None or out.stride() != torch.empty_like(query, device="meta").stride():
        return
    lse_like = None
    if lse is not None:  # others are made like it: by its sizes a tensor takes twice as long to make
        try:
            lse_like = torch.empty_like(lse)
        except OutOfMemoryError:
            return
        lse_like.untyped_storage().resize_(0)
    process.remember(process.kernel_cache(), known, found, (entry, as_found, launch, lse_like))


def remember_call(found: Key | None, given: Given | None, call: AttentionCall, query: Tensor, result: Result) -> None:
    """`remember`, of a call with more than SDPA's arguments; `query` and `result` are the caller's."""
    made = call.made
    if made is None or found is None or given is None or any(each.__class__ not in _NUMBERS for each in given):
        return
    out, lse = (result, None) if isinstance(result, Tensor) else result
    remember(found, *made, query, out, lse)


def remember_same(found: Key | None, given: Given | None, other: Given) -> None:
    """Calls of key `found`, made of `given`, are launched as those of the same tensors and `other`."""
    if found is None or given is None or any(each.__class__ not in _NUMBERS for each in given):
        return
    same = known.get(tuple(other if part is given else part for part in found))
    if same is not None and same[2] is not None:
        process.remember(process.kernel_cache(), known, found, same)


def remember_left(found: Key | None, entry: Entry | None) -> None:
    """A call of this key was computed by torch: it is known of `entry`, for a while at least, that it has no kernel."""
    if found is None or entry is None or entry.launch is not None:
        return
    if monotonic() < entry.due:
        process.remember(process.kernel_cache(), known, found, (entry, None, None, None))


def _kind_of(query: Tensor, key: Tensor, value: Tensor) -> Kind | None:
    """None unless their memory may be read from here, as in nearly every call."""
    if (
        query.__class__ is key.__class__ is value.__class__ is Tensor
        and (dtype := query.dtype) is key.dtype is value.dtype
        and (dtype is torch.float16 or dtype is torch.bfloat16)
        and (device := query.get_device()) == key.get_device() == value.get_device()
        and not (is_grad_enabled() and (query.requires_grad or key.requires_grad or value.requires_grad))
        and not (query.is_neg() or key.is_neg() or value.is_neg())
        and not dispatch_modes()
        and functorch_level() is None
        and forward_ad._current_level < 0
        and (not is_autocast_enabled() or get_autocast_dtype("cuda") is dtype)  # asked without "cuda": half as dear
    ):
        return dtype, device
    return None


def _are_lengths(tensor: Tensor, kind: Kind) -> bool:
    return (
        tensor.__class__ is Tensor
        and tensor.dtype is torch.int32
        and tensor.is_contiguous()
        and tensor.get_device() == kind[1]
    )


def _are_usual(sinks: Tensor, kind: Kind) -> bool:
    return (
        (sinks.__class__ is Tensor or sinks.__class__ is Parameter)
        and sinks.dtype in SINKS
        and sinks.get_device() == kind[1]
        and sinks.is_contiguous()
        and not (sinks.requires_grad and is_grad_enabled())
    )
