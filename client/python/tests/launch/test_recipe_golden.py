"""The launcher on the recipes that it shares with the C++ client's and the worker's."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from answers import answer
from fake_driver import FakeDriver, device
from golden import golden
from google.protobuf import json_format

from attune import Problem, api
from attune.cuda import Kernel
from attune.cuda.driver import TENSOR_MAP_BYTES
from attune.cuda.tensors import ARGUMENTS, arguments_of
from attune.values import LaunchRecipe

GOLDEN = golden("recipes")
# In the order of ARGUMENTS.
ROLES = ("Q", "K", "V", "O", "LSE", "SINKS", "Q_BOUNDS", "KV_BOUNDS", "KV_LENGTHS", "PAGE_TABLE", "K_SCALE", "V_SCALE")
SIZES = {"I32": 4, "F32": 4, "TENSOR_MAP": TENSOR_MAP_BYTES}  # all others are 8
FORMATS = {4: "=i", 8: "=q"}


def addresses(problem: Problem) -> list[int]:
    """0 for what the problem has not."""
    has = arguments_of(problem)
    return [GOLDEN["tensors"][role] if name in has else 0 for name, role in zip(ARGUMENTS, ROLES, strict=True)]


def expected(parameter: Any) -> bytes:
    if parameter is None:
        return bytes(TENSOR_MAP_BYTES)
    if isinstance(parameter, str):
        return bytes.fromhex(parameter)
    return struct.pack("=Qi", parameter["map"], parameter["box"]).ljust(TENSOR_MAP_BYTES, b"\xff")


@pytest.mark.parametrize("maps_begin_with_address", [False, True])
@pytest.mark.parametrize("vector", GOLDEN["vectors"], ids=lambda vector: vector["name"])
def test_recipes_are_launched_as_they_are_written(vector: dict[str, Any], maps_begin_with_address: bool) -> None:
    recipe = LaunchRecipe.from_message(json_format.ParseDict(vector["recipe"], api.message("LaunchRecipe")()))
    kernels = {launch.entry: [SIZES.get(arg.kind, 8) for arg in launch.args] for launch in recipe.launches}
    driver = FakeDriver(kernels)
    driver.maps_begin_with_address = maps_begin_with_address
    areas = iter([vector[area] for area in ("other", "zeroed") if area in vector])
    made = Kernel(answer(vector["problem"], recipe), device(driver, memory=lambda *_: next(areas)))
    given = addresses(made.answer.problem)
    made.launch(*given[:5], 0, given[5:])
    assert len(driver.launched) == len(vector["launches"])
    for launched, wanted in zip(driver.launched, vector["launches"], strict=True):
        cluster = wanted["cluster"] and tuple(wanted["cluster"])
        assert (launched.entry, launched.shared_bytes) == (wanted["entry"], wanted["dynamic_shared_bytes"])
        assert (launched.grid, launched.block) == (tuple(wanted["grid"]), tuple(wanted["block"]))
        assert (launched.cluster, launched.overlaps_previous) == (cluster, wanted["overlaps_previous"])
        sizes = kernels[launched.entry]
        parameters = [
            value if isinstance(value, bytes) else struct.pack(FORMATS[size], value)
            for value, size in zip(launched.parameters, sizes, strict=True)
        ]
        assert parameters == [expected(parameter) for parameter in wanted["parameters"]]
