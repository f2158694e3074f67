"""The way of a call: straight to a kernel when these shapes were seen before, else through the service, else SDPA."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import torch
from torch import Tensor, empty_like, get_autocast_dtype, is_autocast_enabled, is_grad_enabled
from torch._C import _cuda_getCurrentRawStream as current_stream
from torch._C import _len_torch_dispatch_stack as dispatch_modes
from torch.compiler import is_compiling, is_dynamo_compiling

from attune.errors import InvalidArgument
from attune.torch import settings
from attune.torch.call import AttentionCall
from attune.torch.dense_call import DenseCall
from attune.torch.fallback import Reason, Stats, Unsuitable, current_stats, sdpa, warn_once
from attune.torch.kernel_cache import KernelCache
from attune.torch.options import Options, options_of
from attune.torch.problem_of_tensors import check_eager, in_layout, layout_of, new_output, problem_of, refusal

_MOST_CALLS = 16384

# Kernel.launch and the device, by everything about a call that it depends on. Only tensors in a layout are here.
_launches: dict[tuple, tuple[Callable[..., None], int]] = {}
# Until when (time.monotonic) a call is SDPA's, and why.
_held: dict[tuple, tuple[float, Unsuitable]] = {}
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
    with enable_gqa of fewer heads; or all three without the heads. Contiguous, or transposed views of contiguous
    [batch, seq, heads, head_dim] tensors; others are copied. is_causal is top-left: row i sees the keys j <= i.
    Returns a tensor like query, strides included.

    causal: "top-left" (as is_causal) or "bottom-right": row i sees the keys j <= i + seq_kv - seq_q, as FlashAttention
    has it. window: a row sees only the last so many of its causal keys, itself among them; without `causal` it is
    bottom-right. softcap: logits become softcap * tanh(logit / softcap). sinks: fp32 [heads_q], one more logit for each
    head, which takes weight and has no value. return_lse: returns (out, lse), lse the natural log-sum-exp of each row,
    fp32 [batch, heads_q, seq_q]. A row that sees no key is 0, its lse -inf or the sink.

    The service is asked once a shape. Whatever it does not compute (attn_mask, dropout, another scale, gradients, other
    dtypes, shapes without an answer) and everything while it cannot be reached is computed by SDPA, with one
    AttuneWarning a reason; what SDPA has no argument for, by unfused attention in torch, in fp32. `attune.configure`
    says whom to ask. In torch.compile it is the operator attune::attention, or attune::attention_options.
    """
    stats = None if is_dynamo_compiling() else current_stats()
    if causal is not None or window is not None or softcap or sinks is not None or return_lse:
        options = options_of(is_causal, causal, window, softcap, sinks, return_lse, scale, enable_gqa)
        return attend_options(stats, query, key, value, attn_mask, dropout_p, options)
    return attend(stats, query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)


def refresh() -> None:
    """Forgets what was answered: the next call of each shape asks the service again, which may know better by now."""
    global _kernel_cache
    with _lock:
        _kernel_cache = None
        _launches.clear()
        _held.clear()


settings.on_change(refresh)


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
    ):
        signature = (query.shape, key.shape, value.shape, query.dtype, query.get_device(), is_causal, scale, enable_gqa)
        # Asking three times whether strides are plain is cheaper than asking once what they are.
        if not (query.is_contiguous() and key.is_contiguous() and value.is_contiguous()):
            signature = (*signature, query.stride(), key.stride(), value.stride())
        found = _launches.get(signature)
        if found is not None:
            try:
                q, k, v = query.data_ptr(), key.data_ptr(), value.data_ptr()
            except RuntimeError:  # inside of a torch.func transform, which lends its tensors no memory
                q = k = v = signature = None
            if q is not None and not (q | k | v) & 15:
                launch, device = found
                out = empty_like(query)
                launch(q, k, v, out.data_ptr(), 0, current_stream(device))
                if stats is not None:
                    stats.launched += 1
                return out
    else:
        signature = None
    if is_compiling():  # torch.export without dynamo, whose tensors are fakes
        return traced(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)
    try:
        return _attend_anew(stats, signature, query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)
    except Unsuitable as unsuitable:
        warn_once(unsuitable)
        if stats is not None:
            stats.fallbacks[unsuitable.reason.value] += 1
    return sdpa(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)


def attend_options(
    stats: Stats | None,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None,
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
    try:
        launch, device = _launch_of(call)
    except Unsuitable as unsuitable:
        warn_once(unsuitable, call.what, call.otherwise, call.frames)
        if stats is not None:
            stats.fallbacks[unsuitable.reason.value] += 1
    else:
        q, k, v = call.inputs()
        out, lse = call.outputs()
        more = [0 if tensor is None else tensor.data_ptr() for tensor in call.extra]
        to_lse = 0 if lse is None else lse.data_ptr()
        launch(q.data_ptr(), k.data_ptr(), v.data_ptr(), out.data_ptr(), to_lse, current_stream(device), more)
        if stats is not None:
            stats.launched += 1
        return call.shaped(out) if lse is None else (call.shaped(out), call.shaped(lse))
    return computed(call)


def computed(call: AttentionCall) -> Tensor | tuple[Tensor, Tensor]:
    """What `call` asks for, without a kernel."""
    call.check()
    out, lse = call.compute()
    if not call.options.return_lse or lse is None:
        return call.shaped(out)
    return call.shaped(out), call.shaped(lse)


def _launch_of(call: AttentionCall) -> tuple[Callable[..., None], int]:
    """Of the kernel, and its device. Raises Unsuitable, and InvalidArgument for what is no attention."""
    check_eager(*call.tensors())
    call.check_memory()
    call.check_grad()
    signature = call.signature()
    found = _launches.get(signature)
    if found is not None:
        return found
    call.check()
    held = _held.get(signature)
    if held is not None and time.monotonic() < held[0]:
        raise held[1].again()
    refused = call.refusal()
    if refused is not None:
        raise Unsuitable(*refused)
    kernels = _current_kernel_cache()
    try:
        try:
            problem = call.problem()
        except InvalidArgument as error:
            raise Unsuitable(Reason.SHAPE, error.message) from None
        kernel = kernels.kernel(problem, call.query.get_device())
    except Unsuitable as unsuitable:
        _remember(kernels, _held, signature, (time.monotonic() + settings.settings().hold, unsuitable.again()))
        raise
    _remember(kernels, _launches, signature, (kernel.launch, kernel.device))
    return kernel.launch, kernel.device


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
    if refusal(query, key, value, attn_mask, dropout_p, scale, enable_gqa) is not None:
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
    """The way of a call of new shapes, or whose tensors must be copied; not remembered if `signature` is None."""
    held = None if signature is None else _held.get(signature)
    if held is not None and time.monotonic() < held[0]:
        raise held[1].again()
    refused = refusal(query, key, value, attn_mask, dropout_p, scale, enable_gqa)
    if refused is not None:
        raise Unsuitable(*refused)
    check_eager(query, key, value)
    if query.__class__ is not Tensor or key.__class__ is not Tensor or value.__class__ is not Tensor:
        query, key, value = query.detach(), key.detach(), value.detach()  # Parameters
    layout = layout_of(query, key, value)
    target = layout or layout_of(query) or "bhsd"
    kernels = _current_kernel_cache()
    try:
        problem = problem_of(query, key, is_causal, target)
        kernel = kernels.kernel(problem, query.get_device())
    except Unsuitable as unsuitable:
        _remember(kernels, _held, signature, (time.monotonic() + settings.settings().hold, unsuitable.again()))
        raise
    if layout is not None:
        _remember(kernels, _launches, signature, (kernel.launch, kernel.device))
    out = new_output(query)
    inputs = [in_layout(tensor, target) for tensor in (query, key, value)]
    addresses = [tensor.data_ptr() for tensor in (*inputs, out)]
    kernel.launch(*addresses, 0, current_stream(kernel.device))
    if stats is not None:
        stats.launched += 1
    return out


def _remember(kernels: KernelCache, memory: dict, signature: tuple | None, what: tuple) -> None:
    with _lock:
        if signature is None or kernels is not _kernel_cache:  # refreshed in the meantime
            return
        if len(memory) >= _MOST_CALLS:
            memory.clear()
        memory[signature] = what


def _current_kernel_cache() -> KernelCache:
    global _kernel_cache
    with _lock:
        if _kernel_cache is None:
            _kernel_cache = KernelCache(settings.settings())
        return _kernel_cache
