"""The CUDA driver as the rest of this folder needs it, through NVIDIA's cuda-bindings. Tests have a fake of it."""

from __future__ import annotations

import contextlib
import ctypes
import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from attune.errors import AttuneError, FailedPrecondition, InvalidArgument
from attune.values import KernelLaunch, TensorMap

INVALID_CONTEXT = 201  # CUDA_ERROR_INVALID_CONTEXT

TENSOR_MAP_BYTES = 128
TENSOR_MAP_ALIGNMENT = 128  # CUDA 13's of a CUtensorMap; CUDA 12 asks for 64
# cuTensorMapEncodeTiled: map, type, rank, address, dims, strides, box, steps, interleave, swizzle, promotion, fill.
_ENCODE_TILED = ctypes.CFUNCTYPE(
    ctypes.c_int,
    *(ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, ctypes.c_uint64),
    *(ctypes.c_void_p,) * 4,
    *(ctypes.c_int,) * 4,
)
# By what a recipe says: CUtensorMapDataType, CUtensorMapSwizzle, CUtensorMapL2promotion.
_DATA_TYPES = {"U8": 0, "F16": 6, "F32": 7, "BF16": 9}
_SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}
_PROMOTIONS = {0: 0, 64: 1, 128: 2, 256: 3}


class CudaError(AttuneError):
    """The CUDA driver refused a call; `reason` is its name for the error, such as CUDA_ERROR_OUT_OF_MEMORY."""

    code = "INTERNAL"


@dataclass(frozen=True, slots=True)
class Capture:
    """The graph that a stream's work is recorded into."""

    id: int  # unique in the process
    graph: Any


class Driver:
    """Thread-safe as the CUDA driver is. Functions and memory belong to the primary context of the device that was
    current when they were made: torch's context, and CuPy's."""

    # The driver's own call, (config, function, address of the parameters' addresses, 0) -> (CUresult,): of the ways
    # to launch from Python the cheapest, because grid, block and stream are converted once, in `config`.
    launch: Callable[[Any, Any, int, int], tuple[Any]]

    def __init__(self, api: Any) -> None:
        """`api` is the module cuda.bindings.driver."""
        self._api = api
        self.launch = api.cuLaunchKernelEx
        self._call("cuInit", 0)
        self.device_count: int = self._call("cuDeviceGetCount")
        self._contexts: dict[int, Any] = {}
        # Asked at launches that use scratch, and an enum's member dearer through the bindings than the answer itself.
        is_capturing = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
        self._is_capturing = is_capturing(self._address("cuStreamIsCapturing"))

    def current_device(self) -> int | None:
        """The device of the calling thread's context; None when it has none yet."""
        if not int(self._call("cuCtxGetCurrent")):
            return None
        return int(self._call("cuCtxGetDevice"))

    def make_current(self, device: int) -> None:
        """Gives the calling thread the primary context of `device`, as the CUDA runtime does when first used."""
        self._call("cuCtxSetCurrent", self._context(device))

    @contextlib.contextmanager
    def on(self, device: int) -> Iterator[None]:
        """Makes the primary context of `device` current; another thread's capture of a graph is left in peace."""
        mode = self._api.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        self._call("cuCtxPushCurrent", self._context(device))
        try:
            before = self._call("cuThreadExchangeStreamCaptureMode", mode)
            try:
                yield
            finally:
                self._call("cuThreadExchangeStreamCaptureMode", before)
        finally:
            self._call("cuCtxPopCurrent")

    def load_library(self, image: bytes) -> Any:
        """Code from a cubin or from PTX that ends in a zero byte; it stays loaded as long as the process."""
        return self._call("cuLibraryLoadData", image, [], [], 0, [], [], 0)

    def function(self, library: Any, entry: str) -> Any:
        """Kernel `entry` in the current context, loaded to the last byte; InvalidArgument when there is none."""
        result, kernel = self._api.cuLibraryGetKernel(library, entry.encode())
        if result == self._api.CUresult.CUDA_ERROR_NOT_FOUND:
            raise InvalidArgument(f"recipe: entry is '{entry}'; the artifact has no such kernel")
        self._check("cuLibraryGetKernel", result)
        function = self._call("cuKernelGetFunction", kernel)
        with contextlib.suppress(RuntimeError):  # drivers before 12.4 load it at its first launch
            self._call("cuFuncLoad", function)
        return function

    def dynamic_shared_bytes(self, function: Any) -> int:
        """Of a block of `function`, the most that a launch may ask for."""
        return self._call("cuFuncGetAttribute", self._most_shared(), function)

    def allow_dynamic_shared_bytes(self, function: Any, size: int) -> None:
        self._call("cuFuncSetAttribute", function, self._most_shared(), size)

    def allow_large_clusters(self, function: Any) -> None:
        """Of more than 8 CTAs, which not every GPU of an architecture must have."""
        allowed = self._api.CUfunction_attribute.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
        self._call("cuFuncSetAttribute", function, allowed, 1)

    def parameter_sizes(self, function: Any) -> Sequence[int] | None:
        """Bytes of each parameter; None when the driver is too old (before 12.4) to know."""
        sizes: list[int] = []
        try:
            while True:
                result, _, size = self._api.cuFuncGetParamInfo(function, len(sizes))
                if result:
                    return sizes
                sizes.append(size)
        except RuntimeError:
            return None

    def allocate(self, size: int) -> int:
        """Address of `size` bytes on the current device, aligned to 256."""
        return int(self._call("cuMemAlloc", size))

    def free(self, address: int) -> None:
        """Frees once the device has finished all work that was given to it before."""
        self._call("cuMemFree", address)

    def zero(self, address: int, size: int, stream: int) -> None:
        """Zeroes in the order of `stream`."""
        self._call("cuMemsetD8Async", address, 0, size, stream)

    def new_stream(self) -> int:
        """The handle of a stream that waits for no other one, kept as long as the process."""
        return int(self._call("cuStreamCreate", self._api.CUstream_flags.CU_STREAM_NON_BLOCKING))

    def zero_now(self, address: int, size: int, stream: int) -> None:
        """Zeroes in the order of `stream` before it returns."""
        self._call("cuMemsetD8Async", address, 0, size, stream)
        self._call("cuStreamSynchronize", stream)

    def is_capturing(self, stream: int) -> bool:
        status = ctypes.c_int()
        result = self._is_capturing(stream, ctypes.byref(status))
        if result == INVALID_CONTEXT:  # a thread that never used CUDA captures nothing
            return False
        if result:
            raise self.error("cuStreamIsCapturing", result)
        return status.value != 0

    def new_event(self) -> Any:
        """One that takes the time, kept as long as the process, in the current context."""
        return self._call("cuEventCreate", 0)

    def record_event(self, event: Any, stream: int) -> None:
        self._call("cuEventRecord", event, stream)

    def has_reached(self, event: Any) -> bool:
        """Whether the device has come to where `event` was recorded. Waits for nothing."""
        (result,) = self._api.cuEventQuery(event)
        if result == self._api.CUresult.CUDA_ERROR_NOT_READY:
            return False
        self._check("cuEventQuery", result)
        return True

    def microseconds_between(self, start: Any, end: Any) -> float:
        """Of two events that the device has reached."""
        return 1000.0 * self._call("cuEventElapsedTime", start, end)

    def capture(self, stream: int) -> Capture:
        """Of a stream that is capturing."""
        result, _, identity, graph, *_ = self._api.cuStreamGetCaptureInfo(stream)
        self._check("cuStreamGetCaptureInfo", result)
        return Capture(int(identity), graph)

    def when_destroyed(self, graph: Any, function: int, argument: int) -> None:
        """Calls the C function at `function` with `argument` once `graph` and all that was made from it are gone, in
        a thread of the driver's."""
        api = self._api
        flags = api.CUuserObject_flags.CU_USER_OBJECT_NO_DESTRUCTOR_SYNC
        owned = self._call("cuUserObjectCreate", argument, api.CUhostFn(function), 1, flags)
        move = api.CUuserObjectRetain_flags.CU_GRAPH_USER_OBJECT_MOVE
        self._call("cuGraphRetainUserObject", graph, owned, 1, move)

    def config(self, launch: KernelLaunch, stream: int) -> Any:
        """What `launch` takes first."""
        config = self._api.CUlaunchConfig()
        config.gridDimX, config.gridDimY, config.gridDimZ = launch.grid
        config.blockDimX, config.blockDimY, config.blockDimZ = launch.block
        config.sharedMemBytes = launch.dynamic_shared_bytes
        config.hStream = self._api.CUstream(stream)
        config.attrs = self._attributes(launch)
        config.numAttrs = len(config.attrs)
        return config

    def encode_tensor_map(self, tensor_map: TensorMap, address: int) -> bytes:
        """The 128 bytes of a CUtensorMap of a tensor at `address`, which is taken modulo 2^64."""
        encode = _ENCODE_TILED(self._address("cuTensorMapEncodeTiled"))
        _memory, place = tensor_map_memory(1)
        rank = len(tensor_map.dims)
        result = encode(
            place,
            _DATA_TYPES[tensor_map.element],
            rank,
            address,
            (ctypes.c_uint64 * rank)(*tensor_map.dims),
            (ctypes.c_uint64 * rank)(*tensor_map.strides),
            (ctypes.c_uint32 * rank)(*tensor_map.box),
            (ctypes.c_uint32 * rank)(*[1] * rank),
            0,  # not interleaved
            _SWIZZLES[tensor_map.swizzle_bytes],
            _PROMOTIONS[tensor_map.l2_promotion_bytes],
            0,  # zeros beyond the extents
        )
        if result:
            raise self.error(f"cuTensorMapEncodeTiled of {tensor_map}", result)
        return ctypes.string_at(place, TENSOR_MAP_BYTES)

    @functools.cached_property
    def replace_address(self) -> Callable[[int, int], int]:
        """(address of a CUtensorMap, its tensor's modulo 2^64) -> CUresult."""
        # With the interpreter's lock held: the call is shorter than giving it up would be.
        return ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(
            self._address("cuTensorMapReplaceAddress")
        )

    @functools.cached_property
    def maps_begin_with_address(self) -> bool:
        """Whether a CUtensorMap is its tensor's address and 120 bytes that do not depend on it, as far as this driver's
        own functions show: then storing eight bytes re-addresses it, in a tenth of the time of a call."""
        probe = TensorMap(None, 0, "F16", (64, 64), (128,), (64, 64), 128, 256)
        low, high = 1 << 20, (1 << 47) - (1 << 12) + 16
        first, second = (self.encode_tensor_map(probe, address) for address in (low, high))
        _memory, place = tensor_map_memory(1)
        ctypes.memmove(place, first, TENSOR_MAP_BYTES)
        if self.replace_address(place, high) != 0 or ctypes.string_at(place, TENSOR_MAP_BYTES) != second:
            return False
        heads = [int.from_bytes(each[:8], "little") for each in (first, second)]
        return heads == [low, high] and first[8:] == second[8:]

    def error(self, what: str, result: Any) -> CudaError:
        """The error for a `result` other than success."""
        result = self._api.CUresult(result)
        _, words = self._api.cuGetErrorString(result)
        text = words.decode() if words else "unknown error"
        return CudaError(f"{what}: {text}", reason=result.name)

    def _context(self, device: int) -> Any:
        context = self._contexts.get(device)
        if context is None:
            context = self._contexts.setdefault(device, self._call("cuDevicePrimaryCtxRetain", device))
        return context

    def _attributes(self, launch: KernelLaunch) -> list[Any]:
        attributes = []
        if launch.cluster is not None:
            attribute = self._api.CUlaunchAttribute()
            attribute.id = self._api.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
            sides = attribute.value.clusterDim
            sides.x, sides.y, sides.z = launch.cluster
            attributes.append(attribute)
        if launch.overlaps_previous:
            attribute = self._api.CUlaunchAttribute()
            attribute.id = self._api.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
            attribute.value.programmaticStreamSerializationAllowed = 1
            attributes.append(attribute)
        return attributes

    def _address(self, name: str) -> int:
        """Of a function of the driver's; FailedPrecondition when it has none of that name."""
        found, *_ = self._api.cuGetProcAddress(name.encode(), 12000, 0)[1:]
        if not int(found):
            raise FailedPrecondition(f"the CUDA driver is too old: it has no {name}", reason="NO_CUDA_DRIVER")
        return int(found)

    def _most_shared(self) -> Any:
        return self._api.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES

    def _call(self, name: str, *args: Any) -> Any:
        result, *values = getattr(self._api, name)(*args)
        self._check(name, result)
        return values[0] if values else None

    def _check(self, name: str, result: Any) -> None:
        if result:
            raise self.error(name, result)


def tensor_map_memory(count: int) -> tuple[Any, int]:
    """Zeroed memory for so many CUtensorMaps in a row: what keeps it alive, and its address, aligned as they ask."""
    memory = ctypes.create_string_buffer(TENSOR_MAP_BYTES * count + TENSOR_MAP_ALIGNMENT)
    return memory, -(-ctypes.addressof(memory) // TENSOR_MAP_ALIGNMENT) * TENSOR_MAP_ALIGNMENT


@functools.cache
def driver() -> Driver:
    """The process's driver; FailedPrecondition says what is missing."""
    try:
        from cuda.bindings import driver as api
    except ImportError as error:
        raise FailedPrecondition(
            f"attune.load needs the package cuda-bindings ({error}): pip install 'attune-attention[cuda]'",
            reason="NO_CUDA_BINDINGS",
        ) from error
    try:
        found = Driver(api)
    except (CudaError, RuntimeError) as error:
        raise FailedPrecondition(f"no CUDA driver to run kernels with: {error}", reason="NO_CUDA_DRIVER") from error
    if found.device_count == 0:
        raise FailedPrecondition("the CUDA driver sees no device", reason="NO_CUDA_DRIVER")
    return found
