"""Artifacts and recipes that can be loaded, and those that cannot."""

from __future__ import annotations

import pytest
from answers import answer
from fake_driver import FakeDriver, device, kernel, launch, recipe

from attune.cuda import Kernel
from attune.cuda.kernel import _device_index, load, stream_handle
from attune.errors import DataLoss, InvalidArgument
from attune.values import KernelArg

ONE = recipe(launch("main", KernelArg("Q"), KernelArg("I32", 1)))
PROBLEM = "b1.h2.q16.d64.f16"


@pytest.fixture
def driver() -> FakeDriver:
    return FakeDriver({"main": [8, 4]})


def test_an_artifact_is_loaded_once_and_then_not_needed(driver: FakeDriver) -> None:
    home = device(driver)
    Kernel(answer(PROBLEM, ONE), home)
    Kernel(answer("b9.h2.q16.d64.f16", ONE, artifact=None), home)
    assert len(driver.images) == 1


def test_ptx_is_passed_with_a_zero_at_its_end(driver: FakeDriver) -> None:
    ptx = b"// made by a compiler\n.version 8.0\n.target sm_80\n"
    kernel(answer(PROBLEM, ONE, artifact=ptx), driver)
    assert driver.images == [ptx + b"\0"]


def test_a_missing_artifact_is_named_with_what_to_do(driver: FakeDriver) -> None:
    with pytest.raises(InvalidArgument, match=r"artifact is missing .*client\.best\(problem, artifact=True\)"):
        kernel(answer(PROBLEM, ONE, artifact=None), driver)


def test_an_opencl_answer_is_refused(driver: FakeDriver) -> None:
    with pytest.raises(InvalidArgument, match="device_id is 'opencl:0'"):
        kernel(answer(PROBLEM, ONE, device_id="opencl:0"), driver)


def test_an_opencl_answer_is_refused_before_cuda_is_looked_for() -> None:
    with pytest.raises(InvalidArgument, match="device_id is 'opencl:0'"):
        load(answer(PROBLEM, ONE, device_id="opencl:0"))


def test_a_damaged_artifact_is_refused(driver: FakeDriver) -> None:
    with pytest.raises(DataLoss, match="SHA-256"):
        kernel(answer(PROBLEM, ONE, artifact_sha256="0" * 64), driver)


def test_bytes_that_are_neither_cubin_nor_ptx_are_refused(driver: FakeDriver) -> None:
    with pytest.raises(InvalidArgument, match="it must be a cubin or PTX"):
        kernel(answer(PROBLEM, ONE, artifact=b"poclbin"), driver)


def test_an_entry_that_the_artifact_has_not_is_named(driver: FakeDriver) -> None:
    with pytest.raises(InvalidArgument, match="entry is 'other'"):
        kernel(answer(PROBLEM, recipe(launch("other"))), driver)


def test_arguments_of_other_sizes_than_the_kernels_are_refused(driver: FakeDriver) -> None:
    swapped = recipe(launch("main", KernelArg("I32", 1), KernelArg("Q")))
    with pytest.raises(InvalidArgument, match=r"\[4, 8\] bytes; the artifact's takes \[8, 4\]"):
        kernel(answer(PROBLEM, swapped), driver)


def test_scratch_beyond_the_recipes_is_named(driver: FakeDriver) -> None:
    driver.kernels["main"] = [8]
    made = kernel(answer(PROBLEM, recipe(launch("main", KernelArg("SCRATCH", 2)))), driver)
    with pytest.raises(InvalidArgument, match="kernel main: argument 0: scratch is 2"):
        made.launch(1, 2, 3, 4, 0, 0)


@pytest.mark.parametrize(("device", "index"), [(1, 1), ("cuda:1", 1), ("cuda", 0), ("1", 1), (None, 0)])
def test_a_device_may_be_an_index_or_a_name(device: object, index: int) -> None:
    assert _device_index(device, FakeDriver({}, device_count=2)) == index


@pytest.mark.parametrize("device", [2, "cuda:2", "cpu", "opencl:0"])
def test_other_devices_are_refused(device: object) -> None:
    with pytest.raises(InvalidArgument, match="this process sees cuda:0 to cuda:1"):
        _device_index(device, FakeDriver({}, device_count=2))


class _Torch:
    cuda_stream = 5


class _CuPy:
    ptr = 6


class _Protocol:
    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, 7


@pytest.mark.parametrize(("stream", "handle"), [(4, 4), (_Torch(), 5), (_CuPy(), 6), (_Protocol(), 7)])
def test_a_stream_may_be_a_handle_or_a_librarys_object(stream: object, handle: int) -> None:
    assert stream_handle(stream) == handle


def test_other_streams_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="stream is 'default'"):
        stream_handle("default")
