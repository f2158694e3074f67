"""What the driver is called with for a tensor map: tests/golden/tensor_maps.json."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest
from golden import golden

from attune.cuda.driver import _DATA_TYPES, _ENCODE_TILED, _PROMOTIONS, _SWIZZLES, Driver
from attune.values import KernelArg, TensorMap

GOLDEN = golden("tensor_maps")
FIELDS = ("type", "rank", "address", "dims", "strides", "box", "steps", "interleave", "swizzle", "promotion", "fill")


class Recorder(Driver):
    """A driver whose cuTensorMapEncodeTiled writes down its arguments, and `encoded` for the map."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []
        self._encode = _ENCODE_TILED(self._record)

    def _address(self, name: str) -> int:
        assert name == "cuTensorMapEncodeTiled"
        return ctypes.cast(self._encode, ctypes.c_void_p).value

    def _record(self, place: int, *given: Any) -> int:
        call = dict(zip(FIELDS, given, strict=True))
        rank = call["rank"]
        for name, kind, count in (
            ("dims", ctypes.c_uint64, rank),
            ("strides", ctypes.c_uint64, rank - 1),
            ("box", ctypes.c_uint32, rank),
            ("steps", ctypes.c_uint32, rank),
        ):
            call[name] = list((kind * count).from_address(call[name]))
        self.calls.append(call)
        ctypes.memset(place, 7, 128)
        return 0


@pytest.mark.parametrize("case", GOLDEN["calls"])
def test_the_driver_is_called_as_the_daemon_calls_it(case: dict[str, Any]) -> None:
    lists = {name: tuple(case["map"][name]) for name in ("dims", "strides", "box")}
    tensor_map = TensorMap(base=KernelArg("K"), base_offset=0, **{**case["map"], **lists})
    driver = Recorder()
    assert driver.encode_tensor_map(tensor_map, case["call"]["address"]) == bytes([7]) * 128
    assert driver.calls == [case["call"]]


def test_elements_swizzles_and_promotions_have_the_daemons_numbers() -> None:
    assert {name: element["type"] for name, element in GOLDEN["elements"].items()} == _DATA_TYPES
    assert {one["bytes"]: one["value"] for one in GOLDEN["swizzles"]} == _SWIZZLES
    assert {one["bytes"]: one["value"] for one in GOLDEN["l2_promotions"]} == _PROMOTIONS
