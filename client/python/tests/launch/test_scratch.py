"""Which launches share scratch memory, and when it is zeroed."""

from __future__ import annotations

import threading

import pytest
from answers import answer
from fake_driver import FakeDriver, device, launch, recipe

from attune.cuda import CudaError, Kernel
from attune.cuda.device import Device
from attune.cuda.driver import Capture
from attune.values import KernelArg, ScratchBuffer


@pytest.fixture
def driver() -> FakeDriver:
    return FakeDriver({"main": [8, 8]})


def kernel(home: Device, partial_bytes: int = 1000) -> Kernel:
    scratch = [ScratchBuffer("partial", partial_bytes, False), ScratchBuffer("counter", 4, True)]
    main = launch("main", KernelArg("SCRATCH", 0), KernelArg("SCRATCH", 1))
    return Kernel(answer("b1.h2.q16.d64.f16", recipe(main, scratch=scratch)), home)


def used(driver: FakeDriver, made: Kernel, stream: int) -> list[int]:
    """The scratch addresses of one more launch."""
    made.launch(1, 2, 3, 4, 0, stream)
    return driver.launched[-1].parameters


def test_a_stream_uses_the_same_buffers_again(driver: FakeDriver) -> None:
    made = kernel(device(driver))
    assert used(driver, made, 10) == used(driver, made, 10)


def test_streams_have_buffers_of_their_own(driver: FakeDriver) -> None:
    made = kernel(device(driver))
    assert not set(used(driver, made, 10)) & set(used(driver, made, 11))


def test_kernels_share_a_streams_buffers(driver: FakeDriver) -> None:
    home = device(driver)
    assert used(driver, kernel(home), 10) == used(driver, kernel(home), 10)


def test_what_must_be_zero_is_zeroed_once_in_the_streams_order(driver: FakeDriver) -> None:
    made = kernel(device(driver))
    _, counter = used(driver, made, 10)
    used(driver, made, 10)
    assert [(address, stream) for address, _, stream in driver.zeroed] == [(counter, 10)]


def test_buffers_that_are_outgrown_stay_where_they_are(driver: FakeDriver) -> None:
    home = device(driver)
    small, large = kernel(home), kernel(home, partial_bytes=1 << 20)
    before = used(driver, small, 10)
    grown = used(driver, large, 10)
    assert grown[0] != before[0]
    assert used(driver, small, 10) == before
    assert driver.allocated[grown[0]] >= 1 << 20


def test_the_stream_that_each_thread_has_to_itself_is_one_a_thread(driver: FakeDriver) -> None:
    made = kernel(device(driver))
    here = used(driver, made, 2)
    there: list[list[int]] = []
    thread = threading.Thread(target=lambda: there.append(used(driver, made, 2)))
    thread.start()
    thread.join()
    assert here == used(driver, made, 2)
    assert not set(here) & set(there[0])


def test_a_captured_graph_owns_its_buffers(driver: FakeDriver) -> None:
    made = kernel(device(driver))
    eager = used(driver, made, 10)
    driver.captures[10] = Capture(1, "graph 1")
    captured = used(driver, made, 10)
    assert captured == used(driver, made, 10)
    assert not set(eager) & set(captured)
    del driver.captures[10]
    assert used(driver, made, 10) == eager


def test_two_graphs_have_different_buffers(driver: FakeDriver) -> None:
    made = kernel(device(driver))
    driver.captures[10] = Capture(1, "graph 1")
    first = used(driver, made, 10)
    driver.captures[10] = Capture(2, "graph 2")
    assert not set(first) & set(used(driver, made, 10))


def test_a_graph_does_not_zero_at_each_replay(driver: FakeDriver) -> None:
    made = kernel(device(driver))
    driver.captures[10] = Capture(1, "graph 1")
    _, counter = used(driver, made, 10)
    assert [address for address, _ in driver.zeroed_now] == [counter]
    assert driver.zeroed == []


def test_a_later_capture_takes_over_from_a_graph_that_is_gone(driver: FakeDriver) -> None:
    made = kernel(device(driver))
    driver.captures[10] = Capture(1, "graph 1")
    first = used(driver, made, 10)
    driver.destroy("graph 1")
    driver.captures[10] = Capture(2, "graph 2")
    assert sorted(used(driver, made, 10)) == sorted(first)
    assert [address for address, _ in driver.zeroed_now][-1] == driver.launched[-1].parameters[1]


def test_a_graphs_memory_is_not_of_the_stream_that_is_captured(driver: FakeDriver) -> None:
    streams: list[int] = []

    def memory(index: int, size: int, stream: int) -> int:
        streams.append(stream)
        return driver.allocate(size)

    made = kernel(device(driver, memory=memory))
    used(driver, made, 10)
    driver.captures[10] = Capture(1, "graph 1")
    used(driver, made, 10)
    assert streams[:2] == [10, 10]
    assert len(set(streams[2:])) == 1
    assert streams[2] not in driver.captures
    assert driver.streams == 1


def test_a_launch_without_memory_for_its_scratch_is_an_error_and_the_next_tries_again(driver: FakeDriver) -> None:
    full = [True]

    def memory(index: int, size: int, stream: int) -> int:
        if full[0]:
            raise CudaError("out of memory", reason="CUDA_ERROR_OUT_OF_MEMORY")
        return driver.allocate(size)

    made = kernel(device(driver, memory=memory))
    for _ in range(2):
        with pytest.raises(CudaError, match="out of memory"):
            made.launch(1, 2, 3, 4, 0, 10)
    assert driver.launched == []
    full[0] = False
    used(driver, made, 10)


def test_what_must_be_zero_is_zeroed_again_after_a_launch_that_another_should_have_followed() -> None:
    driver = FakeDriver({"main": [8, 8], "combine": [8]})
    scratch = [ScratchBuffer("counter", 4, True)]
    main, combine = launch("main", KernelArg("Q"), KernelArg("SCRATCH", 0)), launch("combine", KernelArg("SCRATCH", 0))
    made = Kernel(answer("b1.h2.q16.d64.f16", recipe(main, combine, scratch=scratch)), device(driver))
    _, counter = used_first(driver, made)
    assert len(driver.zeroed) == 1
    driver.refuses = "main"
    with pytest.raises(CudaError):
        made.launch(1, 2, 3, 4, 0, 10)
    assert len(driver.zeroed) == 1, "nothing has run"
    driver.refuses = "combine"
    with pytest.raises(CudaError):
        made.launch(1, 2, 3, 4, 0, 10)
    assert driver.zeroed[1:] == [(counter, driver.allocated[counter], 10)]


def used_first(driver: FakeDriver, made: Kernel) -> list[int]:
    """The parameters of the first of two launches."""
    made.launch(1, 2, 3, 4, 0, 10)
    return driver.launched[-2].parameters


def test_a_kernel_without_scratch_allocates_nothing(driver: FakeDriver) -> None:
    driver.kernels["main"] = [8]
    made = Kernel(answer("b1.h2.q16.d64.f16", recipe(launch("main", KernelArg("Q")))), device(driver))
    made.launch(1, 2, 3, 4, 0, 10)
    driver.captures[10] = Capture(1, "graph 1")
    made.launch(1, 2, 3, 4, 0, 10)
    assert (driver.allocated, driver.watched) == ({}, [])
