"""Calls that a kernel computed before, launched again: the way of nearly every call with options, of packed sequences
or of pages. Its time is the host's part of attention's. Calls of one key have one kernel; what is not found by its key
goes the way of dispatch.py, and is then remembered."""

from __future__ import annotations

import contextlib

import torch
from torch import Tensor, empty_like, get_autocast_dtype, is_autocast_enabled, is_grad_enabled
from torch._C import _cuda_getCurrentRawStream as current_stream
from torch._C import _get_deterministic_algorithms as deterministic
from torch._C import _len_torch_dispatch_stack as dispatch_modes
from torch._C._functorch import maybe_current_level as functorch_level
from torch.autograd import forward_ad
from torch.nn import Parameter

from attune.errors import AttuneError
from attune.torch import process
from attune.torch.call import AttentionCall
from attune.torch.fallback import Stats, Unsuitable
from attune.torch.problem_of_tensors import other_scale
from attune.torch.process import direct as known
from attune.torch.varlen_calls import rounded_up

Result = Tensor | tuple[Tensor, Tensor]
# is_causal, causal, window, softcap, return_lse, scale and enable_gqa, as the caller gives them.
Given = tuple[object, ...]

_NUMBERS = (bool, int, float, str, type(None))
_SCALE = 5  # where it is in that


def dense_key(
    stats: Stats | None, query: Tensor, key: Tensor, value: Tensor, sinks: Tensor | None, given: Given
) -> tuple | None:
    """Of [batch, heads, length, head_dim]; None where there is more to the call than a launch. So are the others'."""
    if not _is_usual(stats, query, key, value) or (sinks is not None and not _are_usual(sinks, query)):
        return None
    shapes = query.shape, key.shape, value.shape
    # Asking three times whether strides are plain is cheaper than asking once what they are.
    if not (query.is_contiguous() and key.is_contiguous() and value.is_contiguous()):
        shapes = (*shapes, query.stride(), key.stride(), value.stride())
    return shapes, query.dtype, query.get_device(), None if sinks is None else sinks.shape, given


def varlen_key(
    stats: Stats | None,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seqlens_q: Tensor,
    cu_seqlens_k: Tensor,
    max_seqlen_q: int,
    max_seqlen_k: int,
    sinks: Tensor | None,
    given: Given,
) -> tuple | None:
    if (
        not _is_usual(stats, query, key, value)
        or not (query.is_contiguous() and key.is_contiguous() and value.is_contiguous())
        or not (cu_seqlens_q.__class__ is cu_seqlens_k.__class__ is Tensor)
        or not (cu_seqlens_q.is_contiguous() and cu_seqlens_k.is_contiguous())
        or not (max_seqlen_q.__class__ is max_seqlen_k.__class__ is int and max_seqlen_q >= 0 and max_seqlen_k >= 0)
        or (sinks is not None and not _are_usual(sinks, query))
    ):
        return None
    of_keys, of_bounds, device = key.shape, cu_seqlens_q.shape, query.get_device()
    if (
        of_keys != value.shape
        or cu_seqlens_k.shape != of_bounds
        or not (cu_seqlens_q.dtype is cu_seqlens_k.dtype is torch.int32)
        or not (device == cu_seqlens_q.get_device() == cu_seqlens_k.get_device())
    ):
        return None
    try:
        _, heads_q, head_dim = query.shape
        _, heads_kv, head_dim_kv = of_keys
    except ValueError:
        return None
    sizes = heads_q, head_dim, heads_kv, head_dim_kv, rounded_up(max_seqlen_q), rounded_up(max_seqlen_k)
    return sizes, of_bounds, query.dtype, device, None if sinks is None else sinks.shape, given


def paged_key(
    stats: Stats | None,
    query: Tensor,
    key_pages: Tensor,
    value_pages: Tensor,
    block_table: Tensor,
    seqused_k: Tensor,
    cu_seqlens_q: Tensor | None,
    max_seqlen_q: int | None,
    sinks: Tensor | None,
    given: Given,
) -> tuple | None:
    if (
        not _is_usual(stats, query, key_pages, value_pages)
        or not (query.is_contiguous() and key_pages.is_contiguous() and value_pages.is_contiguous())
        or not (block_table.__class__ is seqused_k.__class__ is Tensor)
        or not (block_table.is_contiguous() and seqused_k.is_contiguous())
        or (sinks is not None and not _are_usual(sinks, query))
    ):
        return None
    shape, device = query.shape, query.get_device()
    if not (block_table.dtype is seqused_k.dtype is torch.int32) or not (
        device == block_table.get_device() == seqused_k.get_device()
    ):
        return None
    bounds = None
    if cu_seqlens_q is not None:
        if (
            cu_seqlens_q.__class__ is not Tensor
            or not cu_seqlens_q.is_contiguous()
            or cu_seqlens_q.dtype is not torch.int32
            or cu_seqlens_q.get_device() != device
            or max_seqlen_q.__class__ is not int
            or max_seqlen_q < 0
        ):
            return None
        shape, bounds = shape[1:], (cu_seqlens_q.shape, rounded_up(max_seqlen_q))
    elif max_seqlen_q is not None:
        return None
    numbers = key_pages.shape, value_pages.shape, block_table.shape, seqused_k.shape
    return shape, query.dtype, device, bounds, numbers, None if sinks is None else sinks.shape, given


def more_of(sinks: Tensor | None) -> tuple[int, ...]:
    """What Kernel.launch takes as `more` of a call without sequences."""
    return () if sinks is None else (sinks.data_ptr(), 0, 0, 0, 0, 0, 0)


def launch(
    stats: Stats | None,
    found: tuple,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    rows: tuple[int, ...] | None,
    more: tuple[int, ...],
    out: Tensor | None = None,
) -> Result | None:
    """By the kernel of `found`, a key; None without one. `rows`: the shape of the log-sum-exp, None where none is asked
    for. `more` as Kernel.launch has it. `out`: what is written, which is like `query`; else a new tensor."""
    try:
        entry = known.get(found)
    except TypeError:  # an argument that cannot be looked up
        return None
    kernels_launch = None if entry is None else entry.launch
    if entry is None or kernels_launch is None:
        return None
    q, k, v = query.data_ptr(), key.data_ptr(), value.data_ptr()
    if (q | k | v) & 15:
        return None
    out, lse, to_lse = empty_like(query) if out is None else out, None, 0
    if rows is not None:
        lse = query.new_empty(rows, dtype=torch.float32)
        to_lse = lse.data_ptr()
    try:
        kernels_launch(q, k, v, out.data_ptr(), to_lse, current_stream(entry.device), more)
    except AttuneError:
        return None  # it is found out again, and said why
    if stats is not None:
        stats.launched += 1
    return out if lse is None else (out, lse)


def remember(found: tuple | None, call: AttentionCall) -> None:
    """`call`, whose key is `found`, was computed by what call.entry has: the next one is launched at once, if that is a
    kernel launched as it is."""
    entry = call.entry
    if found is None or entry is None or entry.launch is None or call.is_padded():
        return
    given = found[-1]
    if any(each.__class__ not in _NUMBERS for each in given) or (
        other_scale(given[_SCALE], call.query.shape[-1]) is not None
    ):
        return
    with contextlib.suppress(Unsuitable):
        if call.placement(call.query) is None:
            process.remember(process.kernel_cache(), known, found, entry)


def _is_usual(stats: Stats | None, query: Tensor, key: Tensor, value: Tensor) -> bool:
    """Whether their memory may be read from here, as in nearly every call."""
    return not (
        not (query.__class__ is key.__class__ is value.__class__ is Tensor)
        or not (query.dtype is key.dtype is value.dtype)
        or not (query.get_device() == key.get_device() == value.get_device())
        or (is_grad_enabled() and (query.requires_grad or key.requires_grad or value.requires_grad))
        or (stats is not None and stats.recorder is not None)
        or query.is_neg()
        or key.is_neg()
        or value.is_neg()
        or deterministic()
        or dispatch_modes()
        or functorch_level() is not None
        or forward_ad._current_level >= 0
        or (is_autocast_enabled("cuda") and get_autocast_dtype("cuda") is not query.dtype)
    )


def _are_usual(sinks: Tensor, query: Tensor) -> bool:
    return (
        (sinks.__class__ is Tensor or sinks.__class__ is Parameter)
        and sinks.dtype is torch.float32
        and sinks.get_device() == query.get_device()
        and sinks.is_contiguous()
        and not (sinks.requires_grad and is_grad_enabled())
    )
