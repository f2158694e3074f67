"""What a call tells the driver."""

from __future__ import annotations

import struct
import threading

import pytest
from answers import answer
from fake_driver import FakeDriver, device, kernel, launch, recipe

from attune.cuda import CudaError, Kernel
from attune.cuda.driver import INVALID_CONTEXT
from attune.values import KernelArg, ScratchBuffer

TENSORS = [KernelArg(kind) for kind in ("Q", "K", "V", "O", "LSE")]
PROBLEM = "b1.h2.q16.d64.f16"
STREAM = 77


def test_parameters_are_passed_in_the_kernels_order() -> None:
    driver = FakeDriver({"main": [8, 4, 8, 8, 4, 8, 8, 8]})
    args = [
        KernelArg("LSE"),
        KernelArg("I32", -7),
        KernelArg("O"),
        KernelArg("I64", 1 << 40),
        KernelArg("F32", 0.125),
        KernelArg("V"),
        KernelArg("K"),
        KernelArg("Q"),
    ]
    kernel(answer(PROBLEM, recipe(launch("main", *args))), driver).launch(1, 2, 3, 4, 5, STREAM)
    eighth = struct.unpack("=i", struct.pack("=f", 0.125))[0]
    assert driver.launched[0].parameters == [5, -7, 4, 1 << 40, eighth, 3, 2, 1]


def test_grid_block_shared_memory_and_stream_are_the_recipes() -> None:
    driver = FakeDriver({"main": [8] * 5})
    kernel(answer(PROBLEM, recipe(launch("main", *TENSORS, shared_bytes=4096))), driver).launch(1, 2, 3, 4, 0, STREAM)
    made = driver.launched[0]
    assert (made.grid, made.block, made.shared_bytes, made.stream) == ((3, 2, 1), (128, 1, 1), 4096, STREAM)


def test_launches_run_in_the_recipes_order_with_the_same_scratch() -> None:
    driver = FakeDriver({"main": [8, 8], "combine": [8, 8]})
    two = recipe(
        launch("main", KernelArg("Q"), KernelArg("SCRATCH", 1)),
        launch("combine", KernelArg("SCRATCH", 1), KernelArg("O")),
        scratch=[ScratchBuffer("unused", 0, False), ScratchBuffer("partial", 1000, False)],
    )
    kernel(answer(PROBLEM, two), driver).launch(1, 2, 3, 4, 0, STREAM)
    main, combine = driver.launched
    assert (main.entry, combine.entry) == ("main", "combine")
    assert main.parameters[1] == combine.parameters[0] != 0


def test_a_later_call_passes_its_own_addresses() -> None:
    driver = FakeDriver({"main": [8] * 5})
    made = kernel(answer(PROBLEM, recipe(launch("main", *TENSORS))), driver)
    made.launch(1, 2, 3, 4, 0, STREAM)
    made.launch(11, 12, 13, 14, 0, STREAM)
    assert [one.parameters for one in driver.launched] == [[1, 2, 3, 4, 0], [11, 12, 13, 14, 0]]


def test_threads_on_one_stream_never_mix_their_addresses() -> None:
    driver = FakeDriver({"main": [8] * 5, "combine": [8] * 5})
    made = kernel(answer(PROBLEM, recipe(launch("main", *TENSORS), launch("combine", *TENSORS))), driver)

    def call(number: int) -> None:
        for _ in range(200):
            made.launch(*[number] * 5, STREAM)

    threads = [threading.Thread(target=call, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    pairs = list(zip(driver.launched[::2], driver.launched[1::2], strict=True))
    assert len(pairs) == 1600
    assert all(main.entry == "main" and main.parameters == combine.parameters for main, combine in pairs)


def test_shared_memory_is_allowed_once_and_never_taken_back() -> None:
    driver = FakeDriver({"main": [8] * 5})
    home = device(driver)
    for size in (70_000, 50_000):
        Kernel(answer(PROBLEM, recipe(launch("main", *TENSORS, shared_bytes=size))), home)
    assert driver.shared["main"] == 70_000


def test_a_failed_launch_names_variant_and_problem() -> None:
    driver = FakeDriver({"main": [8] * 5})
    made = kernel(answer(PROBLEM, recipe(launch("main", *TENSORS))), driver)
    driver.current, driver.fails_with = 1, 700
    with pytest.raises(CudaError, match=r"launching family:A=1 for b1\.h2\.q16\.d64\.f16"):
        made.launch(1, 2, 3, 4, 0, STREAM)


def test_a_thread_without_a_context_launches_in_the_devices_own() -> None:
    driver = FakeDriver({"main": [8] * 5})
    made = kernel(answer(PROBLEM, recipe(launch("main", *TENSORS))), driver)
    driver.current, driver.fails_with = None, INVALID_CONTEXT
    made.launch(1, 2, 3, 4, 0, STREAM)
    assert (len(driver.launched), driver.current) == (1, 0)


def test_with_several_devices_the_kernels_own_is_made_current() -> None:
    driver = FakeDriver({"main": [8] * 5}, device_count=2)
    made = kernel(answer(PROBLEM, recipe(launch("main", *TENSORS))), driver)
    driver.current, driver.fails_with = 1, 700  # what a launch on device 1 would come to
    made.launch(1, 2, 3, 4, 0, 0)
    assert (len(driver.launched), driver.current) == (1, 1)


def test_streams_that_may_be_gone_are_forgotten() -> None:
    driver = FakeDriver({"main": [8] * 5})
    made = kernel(answer(PROBLEM, recipe(launch("main", *TENSORS))), driver)
    for stream in range(3000):
        made.launch(1, 2, 3, 4, 0, stream)
    assert len(driver.launched) == 3000
    assert len(made._of_stream) <= 1024


def test_another_kernel_of_the_same_code_has_numbers_of_its_own() -> None:
    driver = FakeDriver({"main": [8, 8, 8, 8, 8, 4]})
    made = kernel(answer(PROBLEM, recipe(launch("main", *TENSORS, KernelArg("I32", 16)))), driver)
    loaded = list(driver.images)
    other = made.like(answer(PROBLEM, recipe(launch("main", *TENSORS, KernelArg("I32", 17)))))
    made.launch(1, 2, 3, 4, 0, STREAM)
    other.launch(11, 12, 13, 14, 0, STREAM)
    made.launch(1, 2, 3, 4, 0, STREAM)
    assert [one.parameters[0] for one in driver.launched] == [1, 11, 1]
    assert [one.parameters[5] for one in driver.launched] == [16, 17, 16]
    assert driver.images == loaded


def test_another_kernel_of_the_same_code_may_need_more_shared_memory() -> None:
    driver = FakeDriver({"main": [8] * 5})
    made = kernel(answer(PROBLEM, recipe(launch("main", *TENSORS, shared_bytes=1000))), driver)
    made.like(answer(PROBLEM, recipe(launch("main", *TENSORS, shared_bytes=900))))
    assert driver.dynamic_shared_bytes("main") == 1000
    made.like(answer(PROBLEM, recipe(launch("main", *TENSORS, shared_bytes=60_000))))
    assert driver.dynamic_shared_bytes("main") == 60_000
