"""The way of a call: straight to a kernel when these shapes were seen before, else through the service, else SDPA."""

from __future__ import annotations

import atexit
import contextlib
import itertools
import math
import os
import threading
from collections.abc import Callable, Iterable
from functools import partial
from time import monotonic

import torch
from torch import (
    OutOfMemoryError,
    Tensor,
    empty_like,
    get_autocast_dtype,
    is_autocast_enabled,
    is_grad_enabled,
)
from torch._C import _cuda_getCurrentRawStream as current_stream
from torch._C import _get_deterministic_algorithms as deterministic
from torch._C import _len_torch_dispatch_stack as dispatch_modes
from torch.autograd import forward_ad
from torch.compiler import is_compiling, is_dynamo_compiling

from attune.background import settings
from attune.background.contest import Captured, captured, eager_only
from attune.background.kernel_cache import Entry, KernelCache, State
from attune.background.service import Gpu
from attune.background.thread import Background
from attune.cuda.device import use_memory
from attune.cuda.strides import Placement
from attune.errors import AttuneError, InvalidArgument
from attune.problem import Problem
from attune.torch import contest, fallback, memory
from attune.torch.call import AttentionCall
from attune.torch.dense_call import DenseCall
from attune.torch.fallback import Reason, Stats, Unsuitable, current_stats, sdpa, warn_once
from attune.torch.local_bias import LocalBias
from attune.torch.options import Options, options_of
from attune.torch.problem_of_tensors import (
    autocasts,
    check_addresses,
    check_eager,
    layout_of,
    new_output,
    problem_for,
    refusal,
    spacing,
)

_MOST_CALLS = 16384
_EXIT_S = 2.0

# By everything about a call that it depends on. Those in `_placed` need more than the launch: their tensors have
# strides of their own.
_calls: dict[tuple, Entry] = {}
_placed: dict[tuple, Entry] = {}
_kernel_cache: KernelCache | None = None
_lock = threading.Lock()


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    *,
    causal: str | None = None,
    window: int | None = None,
    softcap: float = 0.0,
    sinks: Tensor | None = None,
    return_lse: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """F.scaled_dot_product_attention, computed by the fastest kernel that the service knows for this shape.

    query: [batch, heads_q, seq_q, head_dim], f16 or bf16 on a GPU; key, value: [batch, heads_kv, seq_kv, head_dim],
    with enable_gqa of fewer heads; or all three without the heads. Contiguous, transposed, or views of larger tensors,
    each with strides of its own: nothing is copied. The last dimension must be contiguous, the other strides multiples
    of 8 and addresses of 16 bytes.
    is_causal is top-left: row i sees the keys j <= i. Returns a tensor like query, strides included.

    causal: "top-left" (as is_causal) or "bottom-right": row i sees the keys j <= i + seq_kv - seq_q, as FlashAttention
    has it. window: a row sees only the last so many of its causal keys, itself among them; without `causal` it is
    bottom-right. softcap: logits become softcap * tanh(logit / softcap). sinks: fp32 [heads_q], one more logit for each
    head, which takes weight and has no value. return_lse: returns (out, lse), lse the natural log-sum-exp of each row,
    fp32 [batch, heads_q, seq_q]. A row that sees no key is 0, its lse -inf or the sink.

    The service is asked once a shape, or a range of them, by a background thread: until then SDPA computes. A kernel
    that SDPA could stand in for must be the faster one, as recorded or as the first calls show (attune.configure).
    Whatever no kernel computes (attn_mask, dropout, another scale, gradients, other dtypes, no answer) is computed
    by SDPA, too, with one AttuneWarning a reason; what SDPA has no argument for, by unfused attention in torch, in
    fp32. A CUDA graph keeps what computed while it was captured: call `attune.warm` before. `attune.configure` says
    whom to ask. In torch.compile it is the operator attune::attention, or attune::attention_options.
    """
    stats = None if is_dynamo_compiling() else current_stats()
    if causal is not None or window is not None or softcap or sinks is not None or return_lse:
        options = options_of(is_causal, causal, window, softcap, sinks, return_lse, scale, enable_gqa)
        return attend_options(stats, query, key, value, attn_mask, dropout_p, options)
    return attend(stats, query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)


def refresh() -> None:
    """Forgets what was answered: the next call of each shape has the service asked again."""
    global _kernel_cache
    with _lock:
        before, _kernel_cache = _kernel_cache, None
        _calls.clear()
        _placed.clear()
    if before is not None:
        before.close()


def warm(problems: Iterable[Problem | str] = (), *, device: int | None = None, timeout: float = 60.0) -> bool:
    """Waits until the service has answered for every shape that was asked for so far, and for `problems`, and their
    kernels are loaded: later calls run them. False when `timeout` seconds were too few.

    Before a CUDA graph is captured, call what it captures once (SDPA computes), then this. `problems` are those of GPU
    `device` of this process, the current one by default. Whether there is an answer says `attune.state`. Kernels that
    are still to be timed against SDPA are timed now, on tensors of their problems in the current stream, which is
    waited for.
    """
    kernels = _current_kernel_cache()
    until = monotonic() + timeout
    for problem in problems:
        kernels.ask(Problem.of(problem), torch.cuda.current_device() if device is None else device)
    answered = kernels.wait(timeout)
    contest.decide(itertools.takewhile(lambda _: monotonic() < until, kernels.contested()), _attend_plain)
    return answered


def _attend_plain(query: Tensor, key: Tensor, value: Tensor, is_causal: bool) -> Tensor:
    fewer = key.shape[1] != query.shape[1]  # with enable_gqa SDPA may choose another backend
    return attend(None, query, key, value, None, 0.0, is_causal, None, fewer)


def state() -> State:
    """What is known of the shapes that were asked for since the last `attune.configure` or `attune.refresh`."""
    return _current_kernel_cache().state()


def _configured() -> None:
    fallback.warn_again()
    refresh()
    if settings.settings().wait > 0:  # a call that captures a CUDA graph may wait, but starts no thread
        _background.start()


settings.on_change(_configured)


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
) -> Tensor:
    """`attention`, counted in `stats`."""
    if is_dynamo_compiling():
        return traced(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)
    if stats is not None and stats.recorder is not None:
        return stats.recorder.attend(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)
    unsuitable = None
    # What follows is the way of nearly every call, and its time is the host's part of attention's.
    if (
        attn_mask is None
        and dropout_p == 0.0
        and query.__class__ is key.__class__ is value.__class__ is Tensor
        and query.dtype is key.dtype is value.dtype
        and query.get_device() == key.get_device() == value.get_device()
        and not (is_grad_enabled() and (query.requires_grad or key.requires_grad or value.requires_grad))
        and not dispatch_modes()
        and (not is_autocast_enabled("cuda") or get_autocast_dtype("cuda") is query.dtype)
        and not (query.is_neg() or key.is_neg() or value.is_neg())
        and forward_ad._current_level < 0
    ):
        try:
            shapes = query.shape, key.shape, value.shape
            # Asking three times whether strides are plain is cheaper than asking once what they are.
            if not (query.is_contiguous() and key.is_contiguous() and value.is_contiguous()):
                shapes = (*shapes, query.stride(), key.stride(), value.stride())
            signature = (shapes, query.dtype, query.get_device(), is_causal, scale, enable_gqa)
        except RuntimeError:  # nested and sparse tensors have no such thing
            signature = None
        found = _calls.get(signature)
        if found is not None:
            if deterministic():
                _pin(found)
            launch = found.launch
            if launch is not None:
                try:
                    q, k, v = query.data_ptr(), key.data_ptr(), value.data_ptr()
                except RuntimeError:  # inside of a torch.func transform, which lends its tensors no memory
                    q = k = v = signature = None
                if q is not None and not (q | k | v) & 15:
                    out = empty_like(query)
                    try:
                        launch(q, k, v, out.data_ptr(), 0, current_stream(found.device))
                    except AttuneError as error:
                        unsuitable = _refused(found, error)
                    else:
                        if stats is not None:
                            stats.launched += 1
                        return out
            elif monotonic() < found.due:
                unsuitable = found.unsuitable
    else:
        signature = None
    if is_compiling():  # torch.export without dynamo, whose tensors are fakes
        return traced(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)
    if unsuitable is None:
        try:
            return _attend_anew(stats, signature, query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)
        except Unsuitable as raised:
            unsuitable = raised.again()  # without its frames, this one among them
    warn_once(unsuitable)
    if stats is not None:
        stats.fallbacks[unsuitable.reason.value] += 1
    return sdpa(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)


def attend_options(
    stats: Stats | None,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | LocalBias | None,
    dropout_p: float,
    options: Options,
) -> Tensor | tuple[Tensor, Tensor]:
    """`attention` with more than SDPA's arguments, counted in `stats`."""
    same_lengths = query.shape[-2] == key.shape[-2]
    if attn_mask is None and options.only_causal() and (options.causal == "top-left" or same_lengths):
        return attend(stats, query, key, value, attn_mask, dropout_p, True, options.scale, options.enable_gqa)
    call = DenseCall(query, key, value, options, attn_mask, dropout_p)
    if not is_compiling():
        return attend_call(stats, call)
    needs_grad = is_grad_enabled() and any(tensor.requires_grad for tensor in call.tensors())
    if needs_grad or attn_mask is not None or dropout_p != 0.0 or value.shape[-1] != query.shape[-1]:
        return computed(call)
    out, lse = torch.ops.attune.attention_options(query, key, value, *options)
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
        stats.fallbacks[unsuitable.reason.value] += 1
    return computed(call)


def _launch_call(
    stats: Stats | None, entry: Entry, launch: Callable[..., None], call: AttentionCall
) -> Tensor | tuple[Tensor, Tensor]:
    """`call`, by `entry`'s kernel. Raises Unsuitable for what it cannot read, and if the driver does not launch it."""
    addresses = check_addresses(call.query, call.key, call.value)
    try:
        out, lse = call.outputs()
        placement = call.placement(out)
        if placement is not None:
            launch = _launch_of(entry, placement)
        more = [0 if tensor is None else tensor.data_ptr() for tensor in call.extra]
        to_lse = 0 if lse is None else lse.data_ptr()
        launch(*addresses, out.data_ptr(), to_lse, current_stream(entry.device), more)
    except (AttuneError, OutOfMemoryError) as error:
        raise _refused(entry, error) from None
    if stats is not None:
        stats.launched += 1
    return call.shaped(out) if lse is None else (call.shaped(out), call.shaped(lse))


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
    if not call.options.return_lse or lse is None:
        return call.shaped(out)
    return call.shaped(out), call.shaped(lse)


def _entry_of(call: AttentionCall) -> Entry:
    """Raises Unsuitable, and InvalidArgument for what is no attention."""
    check_eager(*call.tensors())
    call.check_memory()
    call.check_grad()
    signature = call.signature()
    found = _calls.get(signature)
    if found is not None and not found.dropped:
        if deterministic():
            _pin(found)
        return found if found.launch is not None or monotonic() < found.due else _current_kernel_cache().look(found)
    try:
        problem = problem_of_call(call)
    except Unsuitable as unsuitable:
        return _never(signature, unsuitable.again())
    return _find(problem, call.query.get_device(), signature, _calls)


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
    entry = None if signature is None else _calls.get(signature) or _placed.get(signature)
    if entry is None or entry.dropped:
        refused = refusal(query, key, value, attn_mask, dropout_p, scale, enable_gqa)
        if refused is not None:
            raise Unsuitable(*refused)
        check_eager(query, key, value)
    if query.__class__ is not Tensor or key.__class__ is not Tensor or value.__class__ is not Tensor:
        query, key, value = query.detach(), key.detach(), value.detach()  # Parameters
    layout = layout_of(query, key, value)
    if entry is not None and not entry.dropped:
        _current_kernel_cache().look(entry)
        if deterministic():
            _pin(entry)
    else:
        try:
            problem = problem_for(query, key, value, is_causal)
        except Unsuitable as unsuitable:
            entry = _never(signature, unsuitable.again())
        else:
            entry = _find(problem, query.get_device(), signature, _placed if layout is None else _calls)
    launch = entry.launch
    if launch is not None:
        return _launch(stats, entry, query, key, value, layout, launch)
    if entry.contest is None:
        raise entry.unsuitable.again()
    ours = partial(_launch, stats, entry, query, key, value, layout)
    theirs = partial(sdpa, query, key, value, is_causal=is_causal, scale=scale, enable_gqa=enable_gqa)
    return contest.take_turn(stats, entry, current_stream(entry.device), ours, theirs)


def _launch(
    stats: Stats | None,
    entry: Entry,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    layout: str | None,
    launch: Callable[..., None],
) -> Tensor:
    """By `entry`'s kernel; `layout` is the tensors'. Raises Unsuitable for what it cannot read, and if the driver does
    not launch it."""
    addresses = check_addresses(query, key, value)
    try:
        out = new_output(query)
        if layout is None:
            launch = _launch_of(entry, (spacing(query), spacing(key), spacing(value), spacing(out)))
        launch(*addresses, out.data_ptr(), 0, current_stream(entry.device))
    except (AttuneError, OutOfMemoryError) as error:
        raise _refused(entry, error) from None
    if stats is not None:
        stats.launched += 1
    return out


def _launch_of(entry: Entry, placement: Placement) -> Callable[..., None]:
    """Of `entry`'s kernel, for tensors that lie so. Raises Unsuitable for what it cannot read."""
    kernel = entry.kernel
    if kernel is None:  # taken back meanwhile
        raise entry.unsuitable.again()
    try:
        launch = kernel.placed(placement).launch
    except InvalidArgument as error:
        raise Unsuitable(Reason.LAYOUT, error.message) from None
    return launch if entry.for_graphs else eager_only(launch)


def _find(problem: Problem, device: int, signature: tuple | None, calls: dict[tuple, Entry]) -> Entry:
    """What is known of `problem`, kept in `calls`."""
    kernels = _current_kernel_cache()
    entry = kernels.find(problem, device)
    if deterministic():
        _pin(entry)
    _remember(kernels, calls, signature, entry)
    return entry


def _pin(entry: Entry) -> None:
    """Under torch.use_deterministic_algorithms what computes now computes later calls, too."""
    if not entry.pinned and not entry.dropped and entry.key is not None:
        _current_kernel_cache().pin(entry)


def _never(signature: tuple | None, unsuitable: Unsuitable) -> Entry:
    """Of a call that no kernel ever computes, which depends on nothing but its signature."""
    entry = Entry(None, unsuitable, math.inf)
    _remember(_current_kernel_cache(), _calls, signature, entry)
    return entry


def _refused(entry: Entry, error: Exception) -> Unsuitable:
    """The driver did not launch `entry`'s kernel, or was not asked to."""
    if isinstance(error, Captured):
        return captured()
    return _current_kernel_cache().refused(entry, error).again()


def _remember(kernels: KernelCache, calls: dict[tuple, Entry], signature: tuple | None, entry: Entry) -> None:
    """Unless attune was configured anew meanwhile."""
    with _lock:
        if signature is None or kernels is not _kernel_cache:
            return
        if len(calls) >= _MOST_CALLS:
            for old in list(calls)[: _MOST_CALLS // 4]:
                del calls[old]
        calls[signature] = entry


def _current_kernel_cache() -> KernelCache:
    global _kernel_cache
    found = _kernel_cache
    if found is not None:
        return found
    settings.settings()  # the first time it configures attune, which takes the lock
    with _lock:
        if _kernel_cache is None:
            _kernel_cache = KernelCache(settings.settings(), gpu_of, _wake, contest.rival)
        return _kernel_cache


def _wake() -> bool:
    return _background.wake()


def _may_start() -> bool:
    """Not while the calling thread's stream is recorded into a CUDA graph."""
    return not (torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing())


def gpu_of(index: int) -> Gpu:
    here = torch.cuda.get_device_properties(index)
    return Gpu(here.name, str(getattr(here, "uuid", "")).removeprefix("GPU-"))


def _work() -> float:
    kernels = _kernel_cache
    return math.inf if kernels is None else kernels.work()


_background = Background(_work, _may_start)
_of_parents: list[object] = []  # what a forked child has of its parent's: to be left alone, not even ended


def _in_forked_child() -> None:
    """Starts anew: the parent's thread is not here, and its other threads may have held any lock."""
    global _kernel_cache, _background, _lock
    _of_parents.append((_kernel_cache, _background))
    _kernel_cache, _background, _lock = None, Background(_work, _may_start), threading.Lock()
    _calls.clear()
    _placed.clear()
    fallback.renew_lock()
    settings.renew_locks()


def _at_exit() -> None:
    """Ends the thread before the interpreter does, whatever it is waiting for."""
    kernels = _kernel_cache
    if kernels is not None:
        kernels.close()
    _background.stop(_EXIT_S)


use_memory(memory.allocate)
os.register_at_fork(after_in_child=_in_forked_child)
atexit.register(_at_exit)
