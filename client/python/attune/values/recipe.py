"""How to run a variant on a problem: everything a host needs beside the artifact."""

from __future__ import annotations

from dataclasses import dataclass, field

from google.protobuf.message import Message

from attune.values.convert import Value, reads

# By BufferRole.
_BUFFERS = (
    *("", "Q", "K", "V", "O", "LSE", "SCRATCH"),
    *("SINKS", "Q_BOUNDS", "KV_BOUNDS", "KV_LENGTHS", "PAGE_TABLE", "K_SCALE", "V_SCALE"),
)
_ELEMENTS = ("", "U8", "F16", "BF16", "F32")  # by TensorMap.Element


_DIMENSIONS = ("", "BATCH", "HEAD", "ROW")  # by Stride.Dimension


@dataclass(frozen=True, slots=True)
class Stride(Value):
    """How far apart, in elements, a tensor has what is next to each other in one of its dimensions."""

    role: str = field(metadata=reads(lambda message: _name(_BUFFERS, message.role)))  # Q, K, V, O, K_SCALE, V_SCALE
    # BATCH (of K and V with pages: from page to page), HEAD or ROW.
    dimension: str = field(metadata=reads(lambda message: _name(_DIMENSIONS, message.dimension)))


@dataclass(frozen=True, slots=True)
class KernelArg(Value):
    """One kernel argument, in the kernel's parameter order."""

    # A buffer: Q, K, V, O, SCRATCH or, null when the problem has none, LSE, SINKS, Q_BOUNDS, KV_BOUNDS, KV_LENGTHS,
    # PAGE_TABLE, K_SCALE, V_SCALE; a number: I32, I64, F32; TENSOR_MAP.
    kind: str
    value: int | float | TensorMap = 0  # the number or the map; with SCRATCH the index into LaunchRecipe.scratch
    stride: Stride | None = None  # with I64: `value` is this one for the problem's own layout
    # With F32, above 0: `value` is proportional to the softmax scale, which may be as many times 1/sqrt(head_dim).
    max_scale_ratio: float = 0.0

    @classmethod
    def from_message(cls, message: Message) -> KernelArg:
        which = message.WhichOneof("value")
        if which == "buffer":
            return _buffer(message.buffer)
        if which == "tensor_map":
            return cls("TENSOR_MAP", TensorMap.from_message(message.tensor_map))
        stride = Stride.from_message(message.stride) if message.HasField("stride") else None
        value = getattr(message, which) if which else 0
        return cls((which or "").upper(), value, stride, message.max_scale_ratio)


def _buffer(message: Message) -> KernelArg:
    return KernelArg(_name(_BUFFERS, message.role), message.scratch)


def _name(names: tuple[str, ...], number: int) -> str:
    return names[number] if number < len(names) else ""


@dataclass(frozen=True, slots=True)
class StrideTerm(Value):
    """Of TensorMap.strides[index], whose value is that for the problem's own layout: offset + factor * stride."""

    index: int
    stride: Stride
    factor: int
    offset: int


@dataclass(frozen=True, slots=True)
class TensorMap(Value):
    """A CUtensorMap, passed by value: all that cuTensorMapEncodeTiled takes but the address. Sizes are innermost
    dimension first."""

    # The buffer; None, or one that is null: 128 zero bytes.
    base: KernelArg | None = field(
        metadata=reads(lambda message: _buffer(message.base) if message.HasField("base") else None)
    )
    base_offset: int  # bytes from the buffer's start to the tensor's, modulo 2^64
    element: str = field(metadata=reads(lambda message: _name(_ELEMENTS, message.element)))  # U8, F16, BF16, F32
    dims: tuple[int, ...]  # elements
    strides: tuple[int, ...]  # bytes, of dims[1:]
    box: tuple[int, ...]  # elements of one copy
    swizzle_bytes: int  # 0 (not swizzled), 32, 64, 128
    l2_promotion_bytes: int  # 0, 64, 128, 256
    terms: tuple[StrideTerm, ...] = ()  # of those strides that a tensor may have its own of


@dataclass(frozen=True, slots=True)
class KernelLaunch(Value):
    """One launch of one kernel."""

    entry: str  # name of the __global__ function or OpenCL kernel
    grid: tuple[int, int, int]  # CTAs (OpenCL: work-groups), x y z
    block: tuple[int, int, int]  # threads (OpenCL: work-items), x y z
    dynamic_shared_bytes: int
    args: tuple[KernelArg, ...]
    cluster: tuple[int, int, int] | None = None  # CTAs of a thread block cluster, x y z
    overlaps_previous: bool = False  # may start before the launch before it has ended

    @classmethod
    def from_message(cls, message: Message) -> KernelLaunch:
        return cls(
            entry=message.entry,
            grid=(message.grid.x, message.grid.y, message.grid.z),
            block=(message.block.x, message.block.y, message.block.z),
            dynamic_shared_bytes=message.dynamic_shared_bytes,
            args=tuple(map(KernelArg.from_message, message.args)),
            cluster=(message.cluster.x, message.cluster.y, message.cluster.z) if message.HasField("cluster") else None,
            overlaps_previous=message.overlaps_previous,
        )


@dataclass(frozen=True, slots=True)
class ScratchBuffer(Value):
    """Device memory that the launches share."""

    name: str
    bytes: int
    zero_before_first_run: bool  # a kernel that needs it zero leaves it zero


@dataclass(frozen=True, slots=True)
class LaunchRecipe(Value):
    """Launches run in order on one stream. Sizes are for the problem that the recipe was made for."""

    scratch: tuple[ScratchBuffer, ...]
    launches: tuple[KernelLaunch, ...]
    main_launch: int  # index of the launch that does the attention itself; the others prepare or combine
