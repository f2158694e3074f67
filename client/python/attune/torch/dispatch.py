"""The way of a call: straight to a kernel when these shapes were seen before, else through the service, else SDPA."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from functools import partial
from time import monotonic

import torch
from torch import OutOfMemoryError, Tensor, is_grad_enabled
from torch._C import _cuda_getCurrentRawStream as current_stream
from torch._C import _get_deterministic_algorithms as deterministic
from torch.compiler import is_compiling, is_dynamo_compiling

from attune.background.capture import UNDECIDED, Captured
from attune.background.entry import Entry
from attune.background.head_dims import scale_of
from attune.cuda.strides import Placement
from attune.errors import AttuneError, InvalidArgument
from attune.problem import Problem
from attune.torch import contest, direct, process
from attune.torch.call import AttentionCall
from attune.torch.dense_call import DenseCall
from attune.torch.fallback import Reason, Stats, Unsuitable, by_torch, sdpa, warn_once
from attune.torch.local_bias import LocalBias
from attune.torch.options import Options
from attune.torch.padding import narrow, needs_padding, widened
from attune.torch.problem_of_tensors import (
    MASKED,
    NEEDS_GRAD,
    autocasts,
    check_addresses,
    check_eager,
    layout_of,
    new_output,
    other_scale,
    placement_of,
    problem_for,
    refusal,
)
from attune.torch.process import calls, other_dtypes, placed
from attune.torch.sinks import in_fp32

_MASKED = Unsuitable(Reason.MASK, MASKED)
_NEEDS_GRAD = Unsuitable(Reason.GRAD, NEEDS_GRAD)


def attend(
    stats: Stats | None,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None,
    dropout_p: float,
    is_causal: bool,
    scale: float | None,
    enable_gqa: bool,
    looked: bool = False,
    found: direct.Key | None = None,
) -> Tensor:
    """`attune.attention`, counted in `stats`. `looked`: the call was looked for, and `found` is its key, if it has
    one."""
    if is_dynamo_compiling():
        return traced(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)
    if stats is not None and stats.recorder is not None:
        return stats.recorder.attend(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)
    unsuitable = None
    if attn_mask is not None:
        unsuitable = _MASKED
    elif not looked:
        if scale.__class__ is Tensor:  # as SDPA takes it
            scale = float(scale)
        if dropout_p == 0.0:
            given = is_causal, None, None, 0.0, False, scale, enable_gqa
            found, known = direct.dense(stats, query, key, value, None, given)
            if known is not None and known.__class__ is not Unsuitable:
                return known
            unsuitable = known
    if is_compiling():  # torch.export without dynamo, whose tensors are fakes
        return traced(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)
    if unsuitable is None and found is None and dropout_p == 0.0:
        unsuitable = _at_a_glance(query, key, value)
    if unsuitable is None:
        try:
            return _attend_anew(stats, found, query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)
        except Unsuitable as raised:
            unsuitable = raised.again()  # without its frames, this one among them
        direct.remember_left(found, calls.get(found) or placed.get(found))
    return by_sdpa(stats, unsuitable, query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa, frames=4)


def by_sdpa(
    stats: Stats | None,
    unsuitable: Unsuitable,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None,
    dropout_p: float,
    is_causal: bool,
    scale: float | None,
    enable_gqa: bool,
    frames: int = 3,
) -> Tensor:
    """What no kernel computes, counted in `stats`. `frames`: from warn_once to the user's call."""
    warn_once(unsuitable, frames=frames)
    if stats is not None:
        stats.fallbacks[unsuitable.counted_as] += 1
    return by_torch(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)


def attend_options(
    stats: Stats | None,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | LocalBias | None,
    dropout_p: float,
    options: Options,
    found: direct.Key | None = None,
    given: direct.Given | None = None,
    out: Tensor | None = None,
) -> Tensor | tuple[Tensor, Tensor]:
    """`attune.attention` with more than SDPA's arguments, counted in `stats`. `found`, `given`: its key, if it has
    one, and what that was made of; without `given` the call was not looked for yet. `out`: checked."""
    same_lengths = query.shape[-2] == key.shape[-2]
    if out is None and attn_mask is None and options.only_causal() and (options.causal == "top-left" or same_lengths):
        result = attend(stats, query, key, value, attn_mask, dropout_p, True, options.scale, options.enable_gqa)
        direct.remember_same(found, given, (True, None, None, 0.0, False, options.scale, options.enable_gqa))
        return result
    if not is_compiling():
        has_key = out is None and attn_mask is None and dropout_p == 0.0 and not options.has_scales()
        if given is None and has_key:
            given = (False, *options[:3], *options[4:7])
            found, known = direct.dense(stats, query, key, value, options.sinks, given)
            if known is not None and known.__class__ is not Unsuitable:
                return known
        call = DenseCall(query, key, value, options, attn_mask, dropout_p, out)
        result = attend_call(stats, call)
        direct.remember_call(found, given, call, query, result)
        return result
    call = DenseCall(query, key, value, options, attn_mask, dropout_p, out)
    needs_grad = is_grad_enabled() and any(tensor.requires_grad for tensor in call.tensors())
    if needs_grad or attn_mask is not None or dropout_p != 0.0 or value.shape[-1] != query.shape[-1]:
        return computed(call)
    made, lse = torch.ops.attune.attention_options(query, key, value, *options)
    out = made if out is None else out.copy_(made)
    return (out, lse) if options.return_lse else out


def attend_call(stats: Stats | None, call: AttentionCall) -> Tensor | tuple[Tensor, Tensor]:
    """What `call` asks for, by a kernel if there is one, counted in `stats`. Its caller is the user's function."""
    if stats is not None and stats.recorder is not None:
        return stats.recorder.attend_call(call)
    try:
        entry = _entry_of(call)
    except Unsuitable as raised:
        unsuitable = raised.again()
    else:
        launch, unsuitable = entry.launch, entry.unsuitable
        try:
            if launch is not None:
                return _launch_call(stats, entry, launch, call)
            if entry.contest is not None:
                ours, theirs = partial(_launch_call, stats, entry, call=call), partial(computed, call)
                return contest.take_turn(stats, entry, current_stream(entry.device), ours, theirs)
        except Unsuitable as raised:
            unsuitable = raised.again()
    warn_once(unsuitable, call.what, call.otherwise, call.frames)
    if stats is not None:
        stats.fallbacks[unsuitable.counted_as] += 1
    return computed(call)


def _launch_call(
    stats: Stats | None, entry: Entry, launch: Callable[..., None], call: AttentionCall
) -> Tensor | tuple[Tensor, Tensor]:
    """`call`, by `entry`'s kernel. Raises Unsuitable for what it cannot read, and if the driver does not launch it."""
    if call.is_padded():
        return _launch_padded_call(stats, entry, launch, call)
    addresses, as_found = check_addresses(call.query, call.key, call.value), launch
    try:
        out, lse = call.outputs()
        if call.out is not None:
            check_addresses(out)
        placement, scale = call.placement(out), other_scale(call.options.scale, call.query.shape[-1])
        if placement is not None or scale is not None:
            launch = _launch_of(entry, placement, scale)
        stream, extra = current_stream(entry.device), call.extra
        if extra.sinks is not None:
            extra = extra._replace(sinks=in_fp32(extra.sinks))
        more = [0 if tensor is None else tensor.data_ptr() for tensor in extra]
        to_lse = 0 if lse is None else lse.data_ptr()
        launch(*addresses, out.data_ptr(), to_lse, stream, more)
    except (AttuneError, OutOfMemoryError) as error:
        raise _refused(entry, error) from None
    if not call.options.has_scales():
        call.made = entry, as_found, launch
    if stats is not None:
        stats.launched += 1
    return call.shaped(out) if lse is None else (call.shaped(out), call.shaped(lse))


def _launch_padded_call(
    stats: Stats | None, entry: Entry, launch: Callable[..., None], call: AttentionCall
) -> Tensor | tuple[Tensor, Tensor]:
    """_launch_call, of copies."""
    try:
        out = call.shaped(call.outputs()[0])
        wide = call.widened()
    except OutOfMemoryError as error:
        raise _refused(entry, error) from None
    result = _launch_call(stats, entry, launch, wide)
    if isinstance(result, Tensor):
        return narrow(result, out)
    return narrow(result[0], out), result[1]


def check(call: AttentionCall) -> None:
    """Raises the InvalidArgument that attend_call would raise."""
    call.check()
    if is_compiling():
        return
    with contextlib.suppress(Unsuitable):
        check_eager(*call.tensors())
        call.check_memory()


def computed(call: AttentionCall) -> Tensor | tuple[Tensor, Tensor]:
    """What `call` asks for, without a kernel."""
    call.check()
    out, lse = call.compute()
    if call.out is not None:
        out = call.out.copy_(out)
    if not call.options.return_lse or lse is None:
        return call.shaped(out)
    return call.shaped(out), call.shaped(lse)


def _entry_of(call: AttentionCall) -> Entry:
    """Raises Unsuitable, and InvalidArgument for what is no attention."""
    check_eager(*call.tensors())
    call.check_memory()
    call.check_grad()
    signature = call.signature()
    known = placed if call.is_padded() else calls
    found = known.get(signature)
    if found is not None and not found.dropped:
        if deterministic():
            _pin(found)
        return found if found.launch is not None or monotonic() < found.due else process.kernel_cache().look(found)
    try:
        problem = problem_of_call(call)
    except Unsuitable as unsuitable:
        return _never(signature, unsuitable.again())
    return _find(problem, call.query.get_device(), signature, known)


def problem_of_call(call: AttentionCall) -> Problem:
    """Raises Unsuitable for what no kernel computes, and InvalidArgument for what is no attention."""
    call.check()
    refused = call.refusal()
    if refused is not None:
        raise Unsuitable(*refused)
    try:
        return call.problem()
    except InvalidArgument as error:
        raise Unsuitable(Reason.SHAPE, error.message) from None


def traced(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None,
    dropout_p: float,
    is_causal: bool,
    scale: float | None,
    enable_gqa: bool,
) -> Tensor:
    """What a graph holds: the operator, or SDPA itself for what no kernel computes (without a warning)."""
    if refusal(query, key, value, attn_mask, dropout_p, scale, enable_gqa) is not None or autocasts(query):
        return sdpa(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
    return torch.ops.attune.attention(query, key, value, is_causal, scale, enable_gqa)


def _at_a_glance(query: Tensor, key: Tensor, value: Tensor) -> Unsuitable | None:
    """What `refusal` says, where that is cheap to know: such calls come as often as others, and are SDPA's."""
    if is_grad_enabled() and (query.requires_grad or key.requires_grad or value.requires_grad):
        return _NEEDS_GRAD
    return other_dtypes.get(_dtypes_of(query, key, value))


def _dtypes_of(query: Tensor, key: Tensor, value: Tensor) -> tuple:
    return query.dtype, key.dtype, value.dtype, query.layout, query.is_nested, query.device


def _attend_anew(
    stats: Stats | None,
    signature: tuple | None,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None,
    dropout_p: float,
    is_causal: bool,
    scale: float | None,
    enable_gqa: bool,
) -> Tensor:
    """The way of a call of new shapes, or of tensors with strides of their own; without `signature` not remembered."""
    entry = None if signature is None else calls.get(signature) or placed.get(signature)
    if entry is None or entry.dropped:
        refused = refusal(query, key, value, attn_mask, dropout_p, scale, enable_gqa)
        if refused is not None:
            if refused[0] is Reason.DTYPE:
                process.remember(
                    process.kernel_cache(), other_dtypes, _dtypes_of(query, key, value), Unsuitable(*refused)
                )
            elif signature is not None and scale == scale:  # no signature with NaN is ever found again
                _never(signature, Unsuitable(*refused))
            raise Unsuitable(*refused)
        check_eager(query, key, value)
    if query.__class__ is not Tensor or key.__class__ is not Tensor or value.__class__ is not Tensor:
        query, key, value = query.detach(), key.detach(), value.detach()  # Parameters
    layout, other = layout_of(query, key, value), other_scale(scale, query.shape[-1])
    if entry is not None and not entry.dropped:
        process.kernel_cache().look(entry)
        if deterministic():
            _pin(entry)
    else:
        try:
            problem = problem_for(query, key, value, is_causal)
        except Unsuitable as unsuitable:
            entry = _never(signature, unsuitable.again())
        else:
            as_made = layout is not None and other is None and not needs_padding(query)
            entry = _find(problem, query.get_device(), signature, calls if as_made else placed)
    launch = entry.launch
    if launch is not None:
        return _launch(stats, entry, query, key, value, layout, other, launch, signature)
    if entry.contest is None:
        raise entry.unsuitable.again()
    ours = partial(_launch, stats, entry, query, key, value, layout, other)
    theirs = partial(by_torch, query, key, value, is_causal=is_causal, scale=scale, enable_gqa=enable_gqa)
    return contest.take_turn(stats, entry, current_stream(entry.device), ours, theirs)


def _launch(
    stats: Stats | None,
    entry: Entry,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    layout: str | None,
    scale: float | None,
    launch: Callable[..., None],
    signature: tuple | None = None,
) -> Tensor:
    """By `entry`'s kernel; `layout` is the tensors', `scale` another than usual. Raises Unsuitable for what it cannot
    read or compute, and if the driver does not launch it. `signature`: by which the launch is remembered."""
    if needs_padding(query):
        return _launch_padded(stats, entry, query, key, value, scale, launch)
    addresses, as_found = check_addresses(query, key, value), launch
    try:
        out = new_output(query)
        if layout is None or scale is not None:
            placement = placement_of(query, key, value, out) if layout is None else None
            launch = _launch_of(entry, placement, scale)
        launch(*addresses, out.data_ptr(), 0, current_stream(entry.device))
    except (AttuneError, OutOfMemoryError) as error:
        raise _refused(entry, error) from None
    direct.remember(signature, entry, as_found, launch, query, out)
    if stats is not None:
        stats.launched += 1
    return out


def _launch_padded(
    stats: Stats | None,
    entry: Entry,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    scale: float | None,
    launch: Callable[..., None],
) -> Tensor:
    """_launch, of copies."""
    try:
        out = new_output(query)
        wide = [widened(tensor) for tensor in (query, key, value)]
    except OutOfMemoryError as error:
        raise _refused(entry, error) from None
    return narrow(_launch(stats, entry, *wide, "bhsd", scale_of(query.shape[-1], scale), launch), out)


def _launch_of(entry: Entry, placement: Placement | None, scale: float | None) -> Callable[..., None]:
    """Of `entry`'s kernel, for tensors that lie so (None: as its layout has them) and another scale (None: the usual
    one). Raises Unsuitable for what it cannot read or compute."""
    kernel = entry.kernel
    if kernel is None:  # taken back meanwhile
        raise entry.unsuitable.again()
    try:
        kernel = kernel if scale is None else kernel.scaled(scale)
    except InvalidArgument as error:
        raise Unsuitable(Reason.SCALE, error.message) from None
    if placement is None:
        return entry.launch_of(kernel)
    try:
        return entry.launch_of(kernel.placed(placement))
    except InvalidArgument as error:
        raise Unsuitable(Reason.LAYOUT, error.message) from None


def _find(problem: Problem, device: int, signature: tuple | None, known: dict[tuple, Entry]) -> Entry:
    """What is known of `problem`, kept in `known`."""
    kernels = process.kernel_cache()
    entry = kernels.find(problem, device)
    if deterministic():
        _pin(entry)
    process.remember(kernels, known, signature, entry)
    return entry


def _pin(entry: Entry) -> None:
    """Under torch.use_deterministic_algorithms what computes now computes later calls, too."""
    if not entry.pinned and not entry.dropped and entry.key is not None:
        process.kernel_cache().pin(entry)


def _never(signature: tuple | None, unsuitable: Unsuitable) -> Entry:
    """Of a call that no kernel ever computes, which depends on nothing but its signature."""
    entry = Entry(None, unsuitable, math.inf)
    process.remember(process.kernel_cache(), calls, signature, entry)
    return entry


def _refused(entry: Entry, error: Exception) -> Unsuitable:
    """The driver did not launch `entry`'s kernel, or was not asked to."""
    if isinstance(error, Captured):
        return UNDECIDED.again()
    return process.kernel_cache().refused(entry, error).again()
