"""DLPack's struct (dlpack.h, DLManagedTensor), as far as a reader needs it that keeps nothing."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

CUDA_DEVICES = (2, 13)  # kDLCUDA, kDLCUDAManaged
_DTYPES = {(2, 16): "f16", (4, 16): "bf16", (2, 32): "f32", (0, 32): "i32"}  # by type code and bits


class _DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


@dataclass(frozen=True, slots=True)
class Tensor:
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None  # in elements; None: contiguous
    dtype: str


def tensor_of(capsule: Any) -> Tensor:
    """What an unused capsule "dltensor" describes. The capsule stays unused: its own destructor releases it."""
    address = ctypes.pythonapi.PyCapsule_GetPointer
    address.restype = ctypes.c_void_p
    address.argtypes = (ctypes.py_object, ctypes.c_char_p)
    tensor = _DLTensor.from_address(address(capsule, b"dltensor"))
    dtype = _DTYPES.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None
    return Tensor(
        (tensor.data or 0) + tensor.byte_offset,
        tuple(tensor.shape[: tensor.ndim]),
        tuple(tensor.strides[: tensor.ndim]) if tensor.strides else None,
        dtype or f"DLPack type {tensor.code} of {tensor.bits} bits x {tensor.lanes}",
    )
