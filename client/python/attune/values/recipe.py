"""How to run a variant on a problem: everything a host needs beside the artifact."""

from __future__ import annotations

from dataclasses import dataclass

from google.protobuf.message import Message

from attune.values.convert import Value

# By BufferRole.
_BUFFERS = (
    *("", "Q", "K", "V", "O", "LSE", "SCRATCH"),
    *("SINKS", "Q_BOUNDS", "KV_BOUNDS", "KV_LENGTHS", "PAGE_TABLE"),
)


@dataclass(frozen=True, slots=True)
class KernelArg(Value):
    """One kernel argument, in the kernel's parameter order."""

    # A buffer: Q, K, V, O, SCRATCH or, null when the problem has none, LSE, SINKS, Q_BOUNDS, KV_BOUNDS, KV_LENGTHS,
    # PAGE_TABLE; a number: I32, I64, F32.
    kind: str
    value: int | float = 0  # the number; with SCRATCH the index into LaunchRecipe.scratch

    @classmethod
    def from_message(cls, message: Message) -> KernelArg:
        which = message.WhichOneof("value")
        if which == "buffer":
            role = message.buffer.role
            return cls(_BUFFERS[role] if role < len(_BUFFERS) else "", message.buffer.scratch)
        return cls((which or "").upper(), getattr(message, which) if which else 0)


@dataclass(frozen=True, slots=True)
class KernelLaunch(Value):
    """One launch of one kernel."""

    entry: str  # name of the __global__ function or OpenCL kernel
    grid: tuple[int, int, int]  # CTAs (OpenCL: work-groups), x y z
    block: tuple[int, int, int]  # threads (OpenCL: work-items), x y z
    dynamic_shared_bytes: int
    args: tuple[KernelArg, ...]

    @classmethod
    def from_message(cls, message: Message) -> KernelLaunch:
        return cls(
            entry=message.entry,
            grid=(message.grid.x, message.grid.y, message.grid.z),
            block=(message.block.x, message.block.y, message.block.z),
            dynamic_shared_bytes=message.dynamic_shared_bytes,
            args=tuple(map(KernelArg.from_message, message.args)),
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
