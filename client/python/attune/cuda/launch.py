"""A recipe with everything resolved that does not change from call to call."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from typing import Any

from attune.cuda.driver import Driver
from attune.cuda.scratch import Arena
from attune.cuda.tensor_maps import TensorMaps
from attune.errors import InvalidArgument
from attune.values import KernelArg, LaunchRecipe, TensorMap

TENSORS = ("Q", "K", "V", "O", "LSE")
# Of problems that have them, in the order of ARGUMENTS (attune/cuda/tensors.py).
MORE_TENSORS = ("SINKS", "Q_BOUNDS", "KV_BOUNDS", "KV_LENGTHS", "PAGE_TABLE", "K_SCALE", "V_SCALE")
_BUFFERS = (*TENSORS, *MORE_TENSORS)
# (values, 0, q, k, v, o, lse) and (values, 0, q, k, v, o, lse, ...) with those of MORE_TENSORS: addresses.
PACK_TENSORS = struct.Struct(f"={len(TENSORS)}Q").pack_into
PACK_ALL = struct.Struct(f"={len(_BUFFERS)}Q").pack_into
_FORMATS = {"I32": "=i", "I64": "=q", "F32": "=f"}


class Bound:
    """A recipe on one stream, its scratch in one arena; `lock` is held while `values` is packed and launched.

    `values` has 8 bytes a slot: the addresses of Q, K, V, O and LSE, which every call writes, those of MORE_TENSORS,
    which stay null unless the problem has one of them, then what never changes. A launch's parameters are addresses of
    slots, so that packing five addresses serves every launch, or of `maps`, None for a recipe without tensor maps.
    """

    __slots__ = ("_parameters", "launches", "lock", "maps", "values", "zeroed")

    def __init__(
        self, driver: Driver, recipe: LaunchRecipe, functions: Sequence[Any], arena: Arena, stream: int
    ) -> None:
        """`functions`: each launch's kernel."""
        self.lock = arena.lock
        scratch = arena.addresses(recipe.scratch)
        self.zeroed = arena.zeroed()
        slots = len(_BUFFERS) + sum(len(launch.args) for launch in recipe.launches)
        self.values = (ctypes.c_uint64 * slots)()
        map_count = sum(arg.kind == "TENSOR_MAP" for launch in recipe.launches for arg in launch.args)
        self.maps = TensorMaps(driver, map_count) if map_count else None
        self.launches: list[tuple[Any, Any, int]] = []  # what Driver.launch takes
        self._parameters = []  # keeps the arrays that `launches` points to
        start = ctypes.addressof(self.values)
        slot = len(_BUFFERS)
        for launch, function in zip(recipe.launches, functions, strict=True):
            parameters = (ctypes.c_void_p * len(launch.args))()
            for index, arg in enumerate(launch.args):
                if arg.kind in _BUFFERS:
                    parameters[index] = start + 8 * _BUFFERS.index(arg.kind)
                    continue
                field = f"recipe: kernel {launch.entry}: argument {index}"
                if self.maps is not None and isinstance(arg.value, TensorMap):
                    parameters[index] = self.maps.add(arg.value, _BUFFERS, scratch, field)
                    continue
                _pack(self.values, 8 * slot, arg, scratch, field)
                parameters[index] = start + 8 * slot
                slot += 1
            self._parameters.append(parameters)
            config = driver.config(launch, stream)
            self.launches.append((config, function, ctypes.addressof(parameters)))


def _pack(values: Any, offset: int, arg: KernelArg, scratch: Sequence[int], field: str) -> None:
    if arg.kind == "SCRATCH":
        if not 0 <= int(arg.value) < len(scratch):
            raise InvalidArgument(f"{field}: scratch is {arg.value}; the recipe has {len(scratch)} scratch buffers")
        struct.pack_into("=Q", values, offset, scratch[int(arg.value)])
    elif arg.kind in _FORMATS:
        struct.pack_into(_FORMATS[arg.kind], values, offset, arg.value)
    else:
        kinds = ", ".join((*_BUFFERS, "SCRATCH", *_FORMATS, "TENSOR_MAP"))
        raise InvalidArgument(f"{field}: kind is '{arg.kind}'; it must be one of {kinds}")
