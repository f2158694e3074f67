"""Events through the driver's interface."""

from __future__ import annotations

import enum
from typing import Any

import pytest

from attune.cuda.driver import CudaError, Driver


class CUresult(enum.IntEnum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_INVALID_HANDLE = 400
    CUDA_ERROR_NOT_READY = 600


class Api:
    """cuda.bindings.driver, of one device; `status` is what cuEventQuery says."""

    CUresult = CUresult
    status = CUresult.CUDA_SUCCESS

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def cuLaunchKernelEx(self, *arguments: Any) -> tuple[CUresult]:
        raise AssertionError

    def cuInit(self, flags: int) -> tuple[CUresult]:
        return (CUresult.CUDA_SUCCESS,)

    def cuDeviceGetCount(self) -> tuple[CUresult, int]:
        return CUresult.CUDA_SUCCESS, 1

    def cuGetProcAddress(self, *arguments: Any) -> tuple[CUresult, int, int]:
        return CUresult.CUDA_SUCCESS, 1, 0

    def cuEventCreate(self, flags: int) -> tuple[CUresult, str]:
        self.calls.append(("create", flags))
        return CUresult.CUDA_SUCCESS, "event"

    def cuEventRecord(self, event: str, stream: int) -> tuple[CUresult]:
        self.calls.append(("record", event, stream))
        return (CUresult.CUDA_SUCCESS,)

    def cuEventQuery(self, event: str) -> tuple[CUresult]:
        return (self.status,)

    def cuEventElapsedTime(self, start: str, end: str) -> tuple[CUresult, float]:
        return CUresult.CUDA_SUCCESS, 0.25 if (start, end) == ("start", "end") else -0.25

    def cuGetErrorString(self, result: CUresult) -> tuple[CUresult, bytes]:
        return CUresult.CUDA_SUCCESS, b"invalid resource handle"


def test_an_event_takes_the_time_and_is_recorded_on_a_stream() -> None:
    api = Api()
    driver = Driver(api)
    driver.record_event(driver.new_event(), 5)
    assert api.calls == [("create", 0), ("record", "event", 5)], "flags: neither without time nor between processes"


@pytest.mark.parametrize(("status", "reached"), [(CUresult.CUDA_SUCCESS, True), (CUresult.CUDA_ERROR_NOT_READY, False)])
def test_an_event_that_is_not_reached_is_no_error(status: CUresult, reached: bool) -> None:
    api = Api()
    api.status = status
    assert Driver(api).has_reached("event") is reached


def test_any_other_answer_is() -> None:
    api = Api()
    api.status = CUresult.CUDA_ERROR_INVALID_HANDLE
    with pytest.raises(CudaError, match="cuEventQuery: invalid resource handle"):
        Driver(api).has_reached("event")


def test_times_between_events_are_microseconds() -> None:
    assert Driver(Api()).microseconds_between("start", "end") == 250.0
