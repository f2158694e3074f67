"""Tensor maps, clusters and overlapping launches, as a call tells them to the driver."""

from __future__ import annotations

import pytest
from answers import answer
from fake_driver import FakeDriver, encoded, kernel, launch, recipe

from attune import InvalidArgument
from attune.cuda import CudaError, Kernel
from attune.cuda.driver import Capture
from attune.values import KernelArg, ScratchBuffer, TensorMap

PROBLEM = "b1.h2.q16.d64.f16"
STREAM = 77


def tensor_map(base: KernelArg | None, offset: int = 0, box: int = 64) -> KernelArg:
    value = TensorMap(base, offset, "F16", (64, 1000), (128,), (box, 128), 128, 256)
    return KernelArg("TENSOR_MAP", value)


def with_maps(driver: FakeDriver, *args: KernelArg, problem: str = PROBLEM, **more) -> Kernel:
    return kernel(answer(problem, recipe(launch("main", *args), **more)), driver)


def test_a_map_is_encoded_once_and_follows_its_tensor() -> None:
    driver = FakeDriver({"main": [128, 8, 128]})
    k, v = tensor_map(KernelArg("K")), tensor_map(KernelArg("V"), box=32)
    made = with_maps(driver, k, KernelArg("K"), v)
    for address in (4096, 8192):
        made.launch(16, address, address + 512, 48, 0, STREAM)
    assert [one.parameters for one in driver.launched] == [
        [encoded(k.value, address), address, encoded(v.value, address + 512)] for address in (4096, 8192)
    ]
    assert driver.encoded == [k.value, v.value]


def test_only_what_moved_is_readdressed() -> None:
    driver = FakeDriver({"main": [128, 128]})
    made = with_maps(driver, tensor_map(KernelArg("K")), tensor_map(KernelArg("Q")))
    made.launch(16, 4096, 32, 48, 0, STREAM)
    driver.replaced.clear()
    made.launch(16, 4096, 64, 80, 0, STREAM)  # V and O alone
    made.launch(32, 4096, 64, 80, 0, STREAM)
    made.launch(32, 4096, 64, 80, 0, STREAM)
    assert driver.replaced == [32]


def test_an_offset_is_added_modulo_two_to_the_64() -> None:
    driver = FakeDriver({"main": [128]})
    shifted = tensor_map(KernelArg("K"), offset=-(1 << 20))
    with_maps(driver, shifted).launch(16, 4096, 32, 48, 0, STREAM)
    assert driver.launched[0].parameters == [encoded(shifted.value, (1 << 64) + 4096 - (1 << 20))]


def test_a_null_tensor_has_a_map_of_zeros_until_it_comes() -> None:
    driver = FakeDriver({"main": [128, 128, 128]})
    lse, sinks = tensor_map(KernelArg("LSE")), tensor_map(KernelArg("SINKS"))
    made = with_maps(driver, lse, tensor_map(None), sinks)
    for address in (0, 256, 0):
        made.launch(16, 32, 48, 64, address, STREAM)
    assert [one.parameters for one in driver.launched] == [
        [first, bytes(128), bytes(128)] for first in (bytes(128), encoded(lse.value, 256), bytes(128))
    ]


def test_scratch_has_a_map_that_stays() -> None:
    driver = FakeDriver({"main": [128, 128, 8]})
    partial, unused = tensor_map(KernelArg("SCRATCH", 1), offset=16), tensor_map(KernelArg("SCRATCH", 0))
    buffers = [ScratchBuffer("unused", 0, False), ScratchBuffer("partial", 1000, False)]
    made = with_maps(driver, partial, unused, KernelArg("SCRATCH", 1), scratch=buffers)
    made.launch(16, 32, 48, 64, 0, STREAM)
    shown, null, address = driver.launched[0].parameters
    assert (shown, null) == (encoded(partial.value, address + 16), bytes(128))
    assert driver.replaced == []


def test_a_scratch_buffer_that_the_recipe_lacks_is_named() -> None:
    driver = FakeDriver({"main": [128]})
    made = with_maps(driver, tensor_map(KernelArg("SCRATCH", 2)))
    with pytest.raises(
        InvalidArgument, match=r"kernel main: argument 0: tensor_map.base is SCRATCH\(2\); it must be one of"
    ):
        made.launch(16, 32, 48, 64, 0, STREAM)


def test_a_captured_launch_has_maps_of_its_own() -> None:
    driver = FakeDriver({"main": [128]})
    k = tensor_map(KernelArg("K"))
    made = with_maps(driver, k, scratch=[ScratchBuffer("partial", 16, False)])
    made.launch(16, 4096, 32, 48, 0, STREAM)
    driver.captures[STREAM] = Capture(1, "graph")
    made.launch(16, 8192, 32, 48, 0, STREAM)
    del driver.captures[STREAM]
    made.launch(16, 4096, 32, 48, 0, STREAM)
    assert [one.parameters for one in driver.launched] == [[encoded(k.value, at)] for at in (4096, 8192, 4096)]


def test_an_address_that_the_driver_refuses_is_an_error_and_not_remembered() -> None:
    driver = FakeDriver({"main": [128]})
    k = tensor_map(KernelArg("K"))
    made = with_maps(driver, k)
    driver.replacing_fails_with = 1
    for _ in range(2):
        with pytest.raises(CudaError, match="cuTensorMapReplaceAddress"):
            made.launch(16, 4096, 32, 48, 0, STREAM)
    driver.replacing_fails_with = 0
    made.launch(16, 4096, 32, 48, 0, STREAM)
    assert [one.parameters for one in driver.launched] == [[encoded(k.value, 4096)]]


def test_maps_that_begin_with_their_address_are_moved_without_the_driver() -> None:
    driver = FakeDriver({"main": [128]})
    driver.maps_begin_with_address = True
    k = tensor_map(KernelArg("K"), offset=(1 << 64) - 4096)
    made = with_maps(driver, k)
    for address in (8192, 12288, 0, 12288):
        made.launch(16, address, 32, 48, 0, STREAM)
    shown = [encoded(k.value, 4096), encoded(k.value, 8192), bytes(128), encoded(k.value, 8192)]
    assert [one.parameters for one in driver.launched] == [[each] for each in shown]
    assert len(driver.replaced) == 2  # the first, and that after null


def test_an_address_that_no_map_takes_is_left_to_the_driver_to_refuse() -> None:
    driver = FakeDriver({"main": [128]})
    driver.maps_begin_with_address = True
    made = with_maps(driver, tensor_map(KernelArg("K")))
    made.launch(16, 4096, 32, 48, 0, STREAM)
    driver.replacing_fails_with = 1
    with pytest.raises(CudaError, match="cuTensorMapReplaceAddress"):
        made.launch(16, 4100, 32, 48, 0, STREAM)


def test_a_kernel_whose_parameter_is_no_map_is_refused() -> None:
    with pytest.raises(InvalidArgument, match=r"arguments have \[128\] bytes; the artifact's takes \[8\]"):
        with_maps(FakeDriver({"main": [8]}), tensor_map(KernelArg("K")))


def test_clusters_and_overlaps_are_the_launchs() -> None:
    driver = FakeDriver({"main": [8], "combine": [8]})
    two = recipe(
        launch("main", KernelArg("Q"), cluster=(2, 1, 1)),
        launch("combine", KernelArg("O"), overlaps_previous=True),
    )
    kernel(answer(PROBLEM, two), driver).launch(16, 32, 48, 64, 0, STREAM)
    assert [(one.cluster, one.overlaps_previous) for one in driver.launched] == [((2, 1, 1), False), (None, True)]


@pytest.mark.parametrize(("cluster", "allowed"), [((8, 1, 1), []), ((4, 2, 2), ["main"])])
def test_a_cluster_above_the_portable_size_is_allowed_first(cluster: tuple[int, int, int], allowed: list[str]) -> None:
    driver = FakeDriver({"main": [8]})
    kernel(answer(PROBLEM, recipe(launch("main", KernelArg("Q"), cluster=cluster))), driver)
    assert driver.large_clusters == allowed
