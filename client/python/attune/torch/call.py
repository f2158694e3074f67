"""A call of attention beyond SDPA's: what it asks of a kernel, and how it is computed without one."""

from __future__ import annotations

import abc
import copy
from collections.abc import Callable
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from attune.background.entry import Entry
from attune.background.head_dims import scale_of
from attune.cuda.strides import MULTIPLE, Placement
from attune.errors import InvalidArgument
from attune.problem import Problem
from attune.torch import problem_of_tensors
from attune.torch.fallback import Reason, Unsuitable
from attune.torch.options import Options
from attune.torch.padding import needs_padding, widened

SINKS = (torch.float32, torch.float16, torch.bfloat16)


class ExtraTensors(NamedTuple):
    """What a kernel reads beside query, key and value, in the order of Kernel.launch's `more`; None: not given."""

    sinks: Tensor | None = None
    cu_seqlens_q: Tensor | None = None
    cu_seqlens_k: Tensor | None = None
    seqused_k: Tensor | None = None
    block_table: Tensor | None = None
    k_scale: Tensor | None = None
    v_scale: Tensor | None = None


class AttentionCall(abc.ABC):
    """One call, dense, varlen or paged."""

    what: ClassVar[str]  # the function's name in warnings and errors
    otherwise: ClassVar[str]  # what computes instead of a kernel

    frames: ClassVar[int] = 3  # from warn_once to the user's call
    pads: ClassVar[bool] = True  # tensors whose head_dim no kernel takes; else they are refused

    query: Tensor
    key: Tensor
    value: Tensor
    options: Options
    extra: ExtraTensors
    out: Tensor | None = None  # what is written, if the caller gives it
    # Once a kernel computed it: what is known of such calls, its launch, and that launch for these strides and scale.
    made: tuple[Entry, Callable[..., None], Callable[..., None]] | None = None

    def tensors(self) -> list[Tensor]:
        return [self.query, self.key, self.value, *(each for each in (*self.extra, self.out) if each is not None)]

    @abc.abstractmethod
    def signature(self) -> tuple:
        """All that `check`, `refusal` and `problem` depend on."""

    @abc.abstractmethod
    def check(self) -> None:
        """Raises InvalidArgument for what is no attention at all."""

    @abc.abstractmethod
    def refusal(self) -> tuple[Reason, str] | None:
        """Why no kernel computes this, whatever the service knows; None when one may."""

    @abc.abstractmethod
    def problem(self) -> Problem:
        """InvalidArgument where a problem has limits that tensors have not."""

    @abc.abstractmethod
    def placement(self, out: Tensor) -> Placement | None:
        """How query, key, value and `out` lie in memory; None: as the problem has them. Raises Unsuitable for strides
        that no kernel reads."""

    @abc.abstractmethod
    def outputs(self) -> tuple[Tensor, Tensor | None]:
        """What a kernel writes: `self.out` or new memory, and a log-sum-exp if options.return_lse, else None."""

    @abc.abstractmethod
    def compute(self) -> tuple[Tensor, Tensor | None]:
        """What a kernel would have written, without one. The second may be None unless options.return_lse."""

    def is_padded(self) -> bool:
        return needs_padding(self.query)

    def widened(self) -> AttentionCall:
        """The same call of padded tensors, which kernels take."""
        wide = copy.copy(self)
        wide.query, wide.key, wide.value = (widened(tensor) for tensor in (self.query, self.key, self.value))
        wide.out = None
        wide.options = self.options._replace(scale=scale_of(self.query.shape[-1], self.options.scale))
        return wide

    def shaped(self, result: Tensor) -> Tensor:
        """An output as the caller wants it."""
        return result

    def refusal_of_values(self) -> tuple[Reason, str] | None:
        """What all kinds of calls refuse, of checked tensors."""
        if not problem_of_tensors.on_one_gpu(self.query, self.key, self.value):
            return Reason.DEVICE, f"the inputs are on {self.query.device}; they must be on one CUDA device"
        if self.query.dtype not in problem_of_tensors.DTYPES:
            return Reason.DTYPE, f"the inputs are {self.query.dtype}; they must be float16 or bfloat16"
        dim = self.query.shape[-1]
        if self.value.shape[-1] != dim:
            return Reason.SHAPE, f"head_dim is {dim}, of the values {self.value.shape[-1]}; they must agree"
        if self.is_padded() and (self.kv_dtype() or not self.pads):
            kept = "8-bit keys and values are" if self.kv_dtype() else "pages are"
            return Reason.SHAPE, f"head_dim is {dim}; it must be a multiple of {MULTIPLE}, as {kept} not padded"
        return problem_of_tensors.refusal_of_scale(self.options.scale)

    def check_memory(self) -> None:  # noqa: B027
        """Raises InvalidArgument for addresses that are a mistake of the caller's; in every eager call, since a
        signature knows none."""

    def check_grad(self) -> None:
        if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in self.tensors()):
            raise Unsuitable(Reason.GRAD, problem_of_tensors.NEEDS_GRAD)

    def check_heads(self, heads_q: int, heads_kv: int) -> None:
        if heads_q == heads_kv or (self.options.enable_gqa and heads_kv > 0 and heads_q % heads_kv == 0):
            return
        raise InvalidArgument(
            f"{self.what}: query has {heads_q} heads and key {heads_kv}; they must agree, or divide with enable_gqa"
        )

    def check_values(self, dims_q: int, dims_kv: int, same_batch: bool, shapes: str) -> None:
        """That query, key and value are of one kind; `shapes` says in words what they should be."""
        query, key, value = self.query, self.key, self.value
        if (
            query.dim() != dims_q
            or key.dim() != dims_kv
            or key.shape[:-1] != value.shape[:-1]
            or key.shape[-1] != query.shape[-1]
            or (same_batch and key.shape[0] != query.shape[0])
        ):
            given = ", ".join(str(tuple(tensor.shape)) for tensor in (query, key, value))
            raise InvalidArgument(f"{self.what}: query, key and value have shapes {given}; they must be {shapes}")
        for field in ("dtype", "device"):
            found = [getattr(tensor, field) for tensor in (query, key, value)]
            of_cache = field == "dtype" and key.dtype in problem_of_tensors.KV_DTYPES
            if (found[1] != found[0] and not of_cache) or found[2] != found[1]:
                given = ", ".join(map(str, found))
                raise InvalidArgument(f"{self.what}: query, key and value have {field}s {given}; they must agree")
        if not query.dtype.is_floating_point:
            raise InvalidArgument(f"{self.what}: query has dtype {query.dtype}; it must be a floating-point type")

    def check_numbers(
        self,
        name: str,
        tensor: object,
        named: str,
        shape: tuple[int, ...],
        dtypes: tuple[torch.dtype, ...] = (torch.int32,),
    ) -> None:
        """Raises InvalidArgument unless `tensor` has this shape and one of these dtypes, is contiguous and is on
        query's device. Only the kernel reads its elements. `named` is the shape in words, for a tensor of another
        rank."""
        if not isinstance(tensor, Tensor):
            raise InvalidArgument(f"{self.what}: {name} is of type {type(tensor).__name__}; it must be a tensor")
        if tensor.dtype not in dtypes:
            allowed = " or ".join(map(str, dtypes))
            raise InvalidArgument(f"{self.what}: {name} has dtype {tensor.dtype}; it must be {allowed}")
        if tensor.dim() != len(shape):
            raise InvalidArgument(f"{self.what}: {name} has shape {tuple(tensor.shape)}; it must be {named}")
        if tensor.shape != shape:
            raise InvalidArgument(f"{self.what}: {name} has shape {tuple(tensor.shape)}; it must be {shape}")
        if tensor.device != self.query.device:
            raise InvalidArgument(f"{self.what}: {name} is on {tensor.device}; query is on {self.query.device}")
        if not tensor.is_contiguous():
            raise InvalidArgument(
                f"{self.what}: {name} is non-contiguous, with strides {tensor.stride()}; it is not copied"
            )

    def check_scales(self, batch: int, heads_kv: int) -> None:
        """That there are scales where key and value are of 8 bits, and none otherwise."""
        of_8_bits = self.key.dtype in problem_of_tensors.KV_DTYPES
        for name, scale in self.options.scales().items():
            if not of_8_bits:
                if scale is None:
                    continue
                allowed = " and ".join(str(dtype) for dtype in problem_of_tensors.KV_DTYPES)
                raise InvalidArgument(
                    f"{self.what}: {name} is given and key has dtype {self.key.dtype}; {allowed} have"
                )
            if not isinstance(scale, Tensor):
                given = "not given" if scale is None else f"of type {type(scale).__name__}"
                raise InvalidArgument(
                    f"{self.what}: {name} is {given}; key has dtype {self.key.dtype}, which needs a tensor of it, made "
                    "once: torch.ones((), device=key.device)"
                )
            shapes = ((), (heads_kv,), (batch, heads_kv))
            if scale.dtype is not torch.float32 or tuple(scale.shape) not in shapes:
                raise InvalidArgument(
                    f"{self.what}: {name} has dtype {scale.dtype} and shape {tuple(scale.shape)}; it must be "
                    f"torch.float32 of shape [], [heads_kv] or [batch, heads_kv], here {shapes[2]}"
                )
            if scale.device != self.query.device:
                raise InvalidArgument(f"{self.what}: {name} is on {scale.device}; query is on {self.query.device}")

    def kv_dtype(self) -> str:
        """The problem's."""
        return problem_of_tensors.KV_DTYPES.get(self.key.dtype, "")

    def in_dtype_of_query(self, key: Tensor, value: Tensor, sequence: int | None = None) -> tuple[Tensor, Tensor]:
        """[batch, heads_kv, length, head_dim] as they are or, of 8 bits, element * scale. `sequence`: these are its."""
        if not self.kv_dtype():
            return key, value
        scaled = []
        for tensor, scale in zip((key, value), self.options.scales().values(), strict=True):
            assert scale is not None  # check_scales
            if sequence is not None and scale.dim() == 2:
                scale = scale[sequence]
            of_heads = scale if scale.dim() == 0 else scale[..., None, None]
            scaled.append((tensor.float() * of_heads).to(self.query.dtype))
        return scaled[0], scaled[1]

    def check_sinks(self, heads_q: int) -> None:
        if self.options.sinks is not None:
            self.check_numbers("sinks", self.options.sinks, "[heads_q]", (heads_q,), SINKS)
