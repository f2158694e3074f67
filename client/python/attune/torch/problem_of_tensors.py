"""The problem that tensors pose, or why no kernel computes it."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch._C import _len_torch_dispatch_stack as dispatch_modes
from torch._C._functorch import maybe_current_level as functorch_level
from torch.autograd import forward_ad
from torch.compiler import is_compiling
from torch.nn import Parameter

from attune.cuda.softmax_scale import is_usual
from attune.cuda.strides import MULTIPLE, Placement, Spacing
from attune.cuda.tensors import ALIGNMENT
from attune.errors import InvalidArgument
from attune.problem import Problem
from attune.torch.fallback import Reason, Unsuitable
from attune.torch.padding import needs_padding

MASKED = "attn_mask is given; only is_causal is computed"
NEEDS_GRAD = "an input requires grad; use torch.no_grad() or torch.inference_mode()"
DTYPES = {torch.float16: "f16", torch.bfloat16: "bf16"}
KV_DTYPES = {torch.float8_e4m3fn: "e4m3", torch.float8_e5m2: "e5m2"}  # of keys and values that have scales


def refusal(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None,
    dropout_p: float,
    scale: float | None,
    enable_gqa: bool,
) -> tuple[Reason, str] | None:
    """Why no kernel computes this, whatever the service knows; None when one may. torch.compile traces this, so that it
    raises nothing."""
    tensors = (query, key, value)
    if attn_mask is not None:
        return Reason.MASK, MASKED
    if dropout_p != 0.0:
        return Reason.DROPOUT, f"dropout_p is {dropout_p}; only 0 is computed"
    if torch.is_grad_enabled() and (query.requires_grad or key.requires_grad or value.requires_grad):
        return Reason.GRAD, NEEDS_GRAD
    if not (is_strided(query) and is_strided(key) and is_strided(value)):
        return Reason.LAYOUT, f"the inputs have layouts {_all('layout', tensors)}; nested and sparse ones are not read"
    if not on_one_gpu(query, key, value):
        return Reason.DEVICE, f"the inputs are on {_all('device', tensors)}; they must be on one CUDA device"
    if query.dtype not in DTYPES or key.dtype != query.dtype or value.dtype != query.dtype:
        return Reason.DTYPE, f"the inputs are {_all('dtype', tensors)}; they must all be float16 or all bfloat16"
    if query.dim() not in (3, 4) or key.dim() != query.dim() or value.dim() != query.dim():
        return Reason.SHAPE, f"the inputs have shapes {_all('shape', tensors)}; they must have 3 or 4 dimensions"
    if key.shape != value.shape or key.shape[0] != query.shape[0] or key.shape[-1] != query.shape[-1]:
        return Reason.SHAPE, f"the inputs have shapes {_all('shape', tensors)}; batch and head_dim must agree"
    if (
        query.dim() == 4
        and key.shape[1] != query.shape[1]
        and not (enable_gqa and key.shape[1] > 0 and query.shape[1] % key.shape[1] == 0)
    ):
        heads = f"{query.shape[1]} and {key.shape[1]}"
        return Reason.SHAPE, f"the inputs have {heads} heads; they must agree, or divide with enable_gqa"
    return refusal_of_scale(scale)


def refusal_of_scale(scale: float | None) -> tuple[Reason, str] | None:
    """Why no kernel computes with it, whatever the service knows."""
    if scale is None or 0 < scale < math.inf:
        return None
    given = "another" if is_compiling() else scale
    return Reason.SCALE, f"scale is {given}; it must be above 0 and finite"


def other_scale(scale: float | None, head_dim: int) -> float | None:
    """`scale` where it is not 1/sqrt(head_dim), for which kernels are made."""
    return None if is_usual(scale, head_dim) else scale


def is_strided(tensor: Tensor) -> bool:
    return tensor.layout is torch.strided and not tensor.is_nested


def on_one_gpu(query: Tensor, key: Tensor, value: Tensor) -> bool:
    return query.device.type == "cuda" and key.device == query.device and value.device == query.device


def _all(what: str, tensors: tuple[Tensor, ...]) -> str:
    return ", ".join([str(getattr(tensor, what)) for tensor in tensors])


def check_eager(query: Tensor, *others: Tensor) -> None:
    """Raises Unsuitable for tensors whose memory cannot be read from here, and for what autocast would change."""
    if is_usual_call(query, *others):
        return
    kinds = {type(tensor) for tensor in (query, *others)}
    if not kinds <= {Tensor, Parameter}:
        names = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise Unsuitable(Reason.SUBCLASS, f"the inputs are of type {names}; only torch.Tensor itself is read")
    if torch._C._len_torch_dispatch_stack() > 0:
        raise Unsuitable(Reason.SUBCLASS, "a TorchDispatchMode is active, which must see every operation")
    if torch._C._functorch.maybe_current_level() is not None:
        raise Unsuitable(Reason.SUBCLASS, "a torch.func transform is active, which must see every operation")
    if forward_ad._current_level >= 0:
        raise Unsuitable(Reason.GRAD, "a dual level of forward-mode differentiation is entered")
    if any(tensor.is_neg() for tensor in (query, *others)):
        raise Unsuitable(Reason.LAYOUT, "an input is the negation of what is in its memory")
    if autocasts(query):
        dtype = torch.get_autocast_dtype("cuda")
        raise Unsuitable(Reason.AUTOCAST, f"autocast to {dtype} is on and the inputs are {query.dtype}")


def is_usual_call(*tensors: Tensor) -> bool:
    """Whether check_eager has nothing to find out, as in nearly every call."""
    for tensor in tensors:
        if tensor.__class__ is not Tensor or tensor.is_neg():
            return False
    apart = dispatch_modes() or functorch_level() is not None or forward_ad._current_level >= 0
    return not (apart or torch.is_autocast_enabled("cuda"))


def autocasts(query: Tensor) -> bool:
    """Whether SDPA would compute in another dtype than `query`'s."""
    return torch.is_autocast_enabled("cuda") and torch.get_autocast_dtype("cuda") != query.dtype


def problem_of(query: Tensor, key: Tensor, is_causal: bool, layout: str) -> Problem:
    """The problem of checked tensors [batch, heads, length, head_dim] or, of one head, [batch, length, head_dim].

    Raises Unsuitable where a problem has limits that tensors have not."""
    try:
        return Problem(
            batch=query.shape[0],
            heads_q=query.shape[1] if query.dim() == 4 else 1,
            heads_kv=not_empty("heads_kv", key.shape[1]) if query.dim() == 4 else 1,
            seq_q=query.shape[-2],
            seq_kv=not_empty("seq_kv", key.shape[-2]),
            head_dim=query.shape[-1],
            dtype=DTYPES[query.dtype],
            mask="causal" if is_causal else "none",
            layout=layout,
        )
    except InvalidArgument as error:
        raise Unsuitable(Reason.SHAPE, error.message) from None


def problem_for(query: Tensor, key: Tensor, value: Tensor, is_causal: bool) -> Problem:
    """problem_of in the layout that they have, or `layout_for` says. Raises Unsuitable also for strides that no kernel
    reads, unless the tensors are padded, which copies them."""
    if needs_padding(query):
        return problem_of(query, key, is_causal, "bhsd")
    check_strides(query, key, value)
    return problem_of(query, key, is_causal, layout_of(query, key, value) or layout_for(query, key))


def not_empty(field: str, size: int) -> int:
    """`size`. Raises InvalidArgument for 0, which a Problem's field would read as "like the queries"."""
    if size == 0:
        raise InvalidArgument(f"{field} is 0; it must be at least 1")
    return size


def layout_of(*tensors: Tensor) -> str | None:
    """The layout that all of them have; None when there is none. With one head or one row both are the same memory,
    which is called bhsd."""
    for tensor in tensors:
        if not tensor.is_contiguous():
            break
    else:
        return "bhsd"
    for tensor in tensors:
        if tensor.dim() != 4 or not tensor.transpose(1, 2).is_contiguous():
            return None
    return "bshd"


def layout_for(query: Tensor, key: Tensor) -> str:
    """The layout to ask for of tensors that share none: the queries', but that of keys that are longer. To kernels that
    take strides it is the same."""
    of_cache = layout_of(key) if key.shape[-2] > query.shape[-2] else None
    return of_cache or layout_of(query) or "bhsd"


def _heads_first(tensor: Tensor) -> bool:
    return tensor.dim() == 4 and tensor.stride(1) < tensor.stride(2)


def new_output(query: Tensor) -> Tensor:
    """Like `query`, strides included, when it has a layout; else dense, in the order of its heads and rows."""
    if layout_of(query) is not None:
        return torch.empty_like(query)
    if _heads_first(query):
        return torch.empty_like(query.transpose(1, 2), memory_format=torch.contiguous_format).transpose(1, 2)
    return torch.empty_like(query, memory_format=torch.contiguous_format)


def check_strides(*tensors: Tensor) -> None:
    """Raises Unsuitable for what no kernel reads, and nothing copies."""
    for tensor in tensors:
        *outer, last = tensor.stride()
        multiple = MULTIPLE if tensor.dtype not in KV_DTYPES else ALIGNMENT
        if (last != 1 and tensor.shape[-1] > 1) or any(
            stride % multiple and size > 1 for stride, size in zip(outer, tensor.shape, strict=False)
        ):
            raise Unsuitable(
                Reason.LAYOUT,
                f"a tensor has strides {tensor.stride()}; the last must be 1, the others multiples of {multiple}",
            )


def check_addresses(*tensors: Tensor) -> list[int]:
    """The tensors' addresses. Raises Unsuitable for one that no kernel reads from."""
    addresses = [tensor.data_ptr() for tensor in tensors]
    for address in addresses:
        if address % ALIGNMENT:
            what = f"a tensor is at address {address:#x}; it must be a multiple of {ALIGNMENT}"
            raise Unsuitable(Reason.LAYOUT, what)
    return addresses


def placement_of(query: Tensor, key: Tensor, value: Tensor, out: Tensor) -> Placement:
    return spacing(query), spacing(key), spacing(value), spacing(out)


def spacing(tensor: Tensor) -> Spacing:
    """Of [batch, heads, length, head_dim] or [batch, length, head_dim]."""
    strides = tensor.stride()
    return strides[:3] if len(strides) == 4 else (strides[0], 0, strides[1])
