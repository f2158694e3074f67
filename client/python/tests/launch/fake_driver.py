"""A CUDA driver without a GPU: it hands out addresses and writes down what it is told."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import struct
from collections.abc import Iterator, Sequence
from typing import Any

from attune.cuda.device import Device, Memory
from attune.cuda.driver import Capture, CudaError
from attune.cuda.kernel import Kernel
from attune.cuda.module import Modules
from attune.errors import InvalidArgument
from attune.values import Answer, KernelArg, KernelLaunch, LaunchRecipe, ScratchBuffer, TensorMap

_FORMATS = {4: "=i", 8: "=q", 128: "=128s"}


@dataclasses.dataclass
class Launched:
    """One launch as the driver saw it; parameters are read when it is launched."""

    entry: str
    grid: Sequence[int]
    block: Sequence[int]
    shared_bytes: int
    stream: int
    parameters: list[Any]  # numbers, and the bytes of tensor maps
    cluster: Sequence[int] | None
    overlaps_previous: bool


def encoded(tensor_map: TensorMap, address: int) -> bytes:
    """What this driver makes of a tensor map."""
    return struct.pack("=Qi", address % (1 << 64), tensor_map.box[0]).ljust(128, b"\xff")


class FakeDriver:
    def __init__(self, kernels: dict[str, list[int]], device_count: int = 1) -> None:
        """`kernels`: bytes of each parameter, by entry."""
        self.kernels = kernels
        self.device_count = device_count
        self.current: int | None = 0
        self.images: list[bytes] = []
        self.shared = dict.fromkeys(kernels, 0)
        self.allocated: dict[int, int] = {}  # bytes by address
        self.zeroed: list[tuple[int, int, int]] = []  # address, bytes, stream
        self.zeroed_now: list[tuple[int, int]] = []
        self.streams = 0  # that were made here
        self.launched: list[Launched] = []
        self.captures: dict[int, Capture] = {}  # by stream
        self.watched: list[tuple[Any, int, int]] = []  # graph, function, argument
        self.encoded: list[TensorMap] = []
        self.replaced: list[int] = []  # the addresses
        self.maps_begin_with_address = False
        self.replacing_fails_with = 0
        self.large_clusters: list[str] = []  # functions that may have them
        self.fails_with = 0
        self.refuses = ""  # to launch this function
        self.events = 0  # that were made here
        self.recorded: dict[int, tuple[float, int]] = {}  # the device's time in us, and the stream, by event
        self.now = 0.0  # on the device, in us, once it has done all that it was given
        self.behind = False  # the device has done nothing of what it was given since
        self.reached: set[int] = set()  # events
        self.recording_fails_with: CudaError | None = None

    @contextlib.contextmanager
    def on(self, device: int) -> Iterator[None]:
        before, self.current = self.current, device
        try:
            yield
        finally:
            self.current = before

    def make_current(self, device: int) -> None:
        self.current = device

    def current_device(self) -> int | None:
        return self.current

    def load_library(self, image: bytes) -> int:
        self.images.append(image)
        return len(self.images)

    def function(self, library: int, entry: str) -> str:
        if entry not in self.kernels:
            raise InvalidArgument(f"recipe: entry is '{entry}'; the artifact has no such kernel")
        return entry

    def dynamic_shared_bytes(self, function: str) -> int:
        return self.shared[function]

    def allow_dynamic_shared_bytes(self, function: str, size: int) -> None:
        self.shared[function] = size

    def parameter_sizes(self, function: str) -> list[int]:
        return self.kernels[function]

    def allocate(self, size: int) -> int:
        address = (1 << 40) + sum(self.allocated.values())
        self.allocated[address] = size
        return address

    def zero(self, address: int, size: int, stream: int) -> None:
        self.zeroed.append((address, size, stream))

    def new_stream(self) -> int:
        self.streams += 1
        return 1000 + self.streams

    def zero_now(self, address: int, size: int, stream: int) -> None:
        self.zeroed_now.append((address, size))

    def is_capturing(self, stream: int) -> bool:
        return stream in self.captures

    def capture(self, stream: int) -> Capture:
        return self.captures[stream]

    def when_destroyed(self, graph: Any, function: int, argument: int) -> None:
        self.watched.append((graph, function, argument))

    def destroy(self, graph: Any) -> None:
        """What the driver does when `graph` is gone."""
        for watched, function, argument in self.watched:
            if watched == graph:
                ctypes.CFUNCTYPE(None, ctypes.c_void_p)(function)(argument)

    def config(self, launch: KernelLaunch, stream: int) -> tuple:
        shape = (launch.grid, launch.block, launch.dynamic_shared_bytes)
        return *shape, stream, launch.cluster, launch.overlaps_previous

    def encode_tensor_map(self, tensor_map: TensorMap, address: int) -> bytes:
        self.encoded.append(tensor_map)
        return encoded(tensor_map, address)

    def replace_address(self, place: int, address: int) -> int:
        assert place % 128 == 0
        self.replaced.append(address)
        ctypes.memmove(place, struct.pack("=Q", address % (1 << 64)), 8)
        return self.replacing_fails_with

    def new_event(self) -> int:
        self.events += 1
        return self.events

    def record_event(self, event: int, stream: int) -> None:
        if self.recording_fails_with is not None:
            raise self.recording_fails_with
        self.recorded[event] = self.now, stream
        self.reached.discard(event)
        if not self.behind:
            self.reached.add(event)

    def has_reached(self, event: int) -> bool:
        return event in self.reached

    def microseconds_between(self, start: int, end: int) -> float:
        assert {start, end} <= self.reached
        return self.recorded[end][0] - self.recorded[start][0]

    def catch_up(self) -> None:
        """The device does all that it was given."""
        self.reached |= set(self.recorded)

    def allow_large_clusters(self, function: str) -> None:
        self.large_clusters.append(function)

    def launch(self, config: tuple, function: str, parameters: int, extra: int) -> tuple[int]:
        if self.fails_with and self.current != 0:
            return (self.fails_with,)
        if function == self.refuses:
            return (701,)
        values = []
        for index, size in enumerate(self.kernels[function]):
            address = ctypes.c_void_p.from_address(parameters + 8 * index).value
            values += struct.unpack(_FORMATS[size], ctypes.string_at(address, size))
        *shape, cluster, overlaps_previous = config
        self.launched.append(Launched(function, *shape, values, cluster, overlaps_previous))
        return (0,)

    def error(self, what: str, result: int) -> CudaError:
        return CudaError(f"{what}: failed", reason=str(result))


def recipe(*launches: KernelLaunch, scratch: Sequence[ScratchBuffer] = (), main_launch: int = 0) -> LaunchRecipe:
    return LaunchRecipe(tuple(scratch), launches, main_launch)


def launch(entry: str, *args: KernelArg, shared_bytes: int = 0, **more: Any) -> KernelLaunch:
    return KernelLaunch(entry, (3, 2, 1), (128, 1, 1), shared_bytes, args, **more)


def device(driver: FakeDriver, index: int = 0, memory: Memory | None = None) -> Device:
    return Device(index, driver, Modules(driver), memory)  # type: ignore[arg-type]


def kernel(answer: Answer, driver: FakeDriver) -> Kernel:
    return Kernel(answer, device(driver))
