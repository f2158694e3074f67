"""GPU arrays of any library, read without copying: torch's own methods, __cuda_array_interface__, __dlpack__."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from attune.cuda import dlpack
from attune.errors import InvalidArgument

_TYPESTRS = {"<f2": "f16", "<f4": "f32", "<i4": "i32"}

_TORCH_DTYPES = {"float16": "f16", "bfloat16": "bf16", "float32": "f32", "int32": "i32"}
_TORCH_DTYPES |= {"float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2"}


@dataclass(frozen=True, slots=True)
class Array:
    """Where an argument's elements are."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # in elements
    dtype: str  # "f16", "bf16", "e4m3", "e5m2", "f32", "i32", or the library's own name of another
    device: int | None  # None: the library does not say, but it is memory of a GPU
    stream: int | None = None  # that the producer works on, when it says so


def is_torch(argument: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(argument, torch.Tensor)


def read(name: str, argument: Any, stream: Callable[[], int]) -> Array:
    """Argument `name` of a kernel; `stream` is asked for when the producer wants to know who reads its memory.

    Raises InvalidArgument: no array, or one that is not on a GPU.
    """
    if is_torch(argument):
        return _from_torch(name, argument)
    if hasattr(argument, "__cuda_array_interface__"):
        return _from_interface(argument.__cuda_array_interface__)
    if hasattr(argument, "__dlpack__"):
        return _from_dlpack(name, argument, stream)
    raise InvalidArgument(
        f"{name} is of type {type(argument).__name__}; it must be a torch tensor or have "
        "__cuda_array_interface__ or __dlpack__"
    )


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """In elements, of an array without gaps, the last dimension fastest."""
    return tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))


def _from_torch(name: str, tensor: Any) -> Array:
    if not tensor.is_cuda:
        raise InvalidArgument(f"{name} is on {tensor.device}; it must be on a CUDA device")
    dtype = str(tensor.dtype).removeprefix("torch.")
    return Array(
        tensor.data_ptr(),
        tuple(tensor.shape),
        tensor.stride(),
        _TORCH_DTYPES.get(dtype, dtype),
        tensor.get_device(),
    )


def _from_interface(interface: dict[str, Any]) -> Array:
    """https://numba.readthedocs.io/en/stable/cuda/cuda_array_interface.html, version 3 and before."""
    shape = tuple(interface["shape"])
    strides = interface.get("strides")
    typestr = interface["typestr"]
    size = int(typestr[2:])
    return Array(
        interface["data"][0],
        shape,
        contiguous_strides(shape) if strides is None else tuple(stride // size for stride in strides),
        _TYPESTRS.get(typestr, typestr),
        None,
        interface.get("stream"),
    )


def _from_dlpack(name: str, argument: Any, stream: Callable[[], int]) -> Array:
    kind, device = argument.__dlpack_device__()
    if kind not in dlpack.CUDA_DEVICES:
        raise InvalidArgument(f"{name} is on DLPack device type {int(kind)}; it must be CUDA memory (2 or 13)")
    # DLPack has no 0 for CUDA streams: 1 is the legacy default one.
    capsule = argument.__dlpack__(stream=stream() or 1)
    tensor = dlpack.tensor_of(capsule)
    strides = contiguous_strides(tensor.shape) if tensor.strides is None else tensor.strides
    return Array(tensor.address, tensor.shape, strides, tensor.dtype, device)
