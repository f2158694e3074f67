"""Tensor maps of a bound recipe: encoded once, then given another address when a call's tensor is elsewhere."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from attune.cuda.driver import TENSOR_MAP_BYTES, Driver, tensor_map_memory
from attune.errors import InvalidArgument
from attune.values import TensorMap

_ALIGNMENT = 16  # of a map's tensor
_ANYWHERE = 1 << 20  # an address that a map is encoded for before its tensor's is known


class _Map:
    """A map of a tensor that a call brings, all zeros while the tensor is null."""

    __slots__ = ("encoded", "head", "offset", "place", "shown", "tensor")

    def __init__(self, encoded: bytes, offset: int, place: int, tensor: int) -> None:
        self.encoded = encoded  # for some address
        self.offset = offset
        self.place = place
        self.head = ctypes.c_uint64.from_address(place)
        self.tensor = tensor  # its index among a call's addresses
        self.shown = 0  # the address that it was given last


class TensorMaps:
    """Maps in the memory that launches read them from. Not thread-safe: `Bound.lock` is held."""

    __slots__ = ("_by_head", "_driver", "_memory", "_moving", "_next", "_shown")

    def __init__(self, driver: Driver, count: int) -> None:
        self._driver = driver
        self._memory, self._next = tensor_map_memory(count)
        self._moving: list[_Map] = []
        self._by_head = False  # a map's first eight bytes are its address: see the driver
        self._shown: tuple[int, ...] = ()

    def add(self, tensor_map: TensorMap, tensors: Sequence[str], scratch: Sequence[int], field: str) -> int:
        """Where `tensor_map` is, for a launch's parameters. `tensors` names a call's addresses in their order."""
        place = self._next
        self._next += TENSOR_MAP_BYTES
        base = tensor_map.base
        if base is None:
            return place
        if base.kind in tensors:
            encoded = self._driver.encode_tensor_map(tensor_map, _ANYWHERE)
            self._by_head = self._driver.maps_begin_with_address
            self._moving.append(_Map(encoded, tensor_map.base_offset, place, tensors.index(base.kind)))
            return place
        if base.kind != "SCRATCH" or not 0 <= int(base.value) < len(scratch):
            raise InvalidArgument(
                f"{field}: tensor_map.base is {base.kind}({base.value}); it must be one of {', '.join(tensors)}, or "
                f"SCRATCH below {len(scratch)}"
            )
        address = scratch[int(base.value)]
        if address:
            encoded = self._driver.encode_tensor_map(tensor_map, address + tensor_map.base_offset)
            ctypes.memmove(place, encoded, TENSOR_MAP_BYTES)
        return place

    def show(self, addresses: tuple[int, ...]) -> None:
        """Points every map at its tensor of a call, null where `addresses` end before it; CudaError. A call with the
        addresses of the one before costs a comparison."""
        if addresses == self._shown:
            return
        self._shown = ()
        for moving in self._moving:
            address = addresses[moving.tensor] if moving.tensor < len(addresses) else 0
            if address == moving.shown:
                continue
            if self._by_head and moving.shown and address and not (address + moving.offset) % _ALIGNMENT:
                moving.head.value = address + moving.offset  # modulo 2^64
                moving.shown = address
            else:
                self._move(moving, address)
        self._shown = addresses

    def _move(self, moving: _Map, address: int) -> None:
        if address == 0:
            ctypes.memset(moving.place, 0, TENSOR_MAP_BYTES)
        else:
            if moving.shown == 0:
                ctypes.memmove(moving.place, moving.encoded, TENSOR_MAP_BYTES)
            result = self._driver.replace_address(moving.place, address + moving.offset)
            if result:
                raise self._driver.error("cuTensorMapReplaceAddress", result)
        moving.shown = address
