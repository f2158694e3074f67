"""Arrays of any library as a kernel's arguments, read and written in place."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest
from answers import answer
from fake_driver import FakeDriver, kernel, launch, recipe

from attune.cuda import Kernel
from attune.errors import InvalidArgument
from attune.values import KernelArg, Stride

ARGS = [KernelArg(kind) for kind in ("Q", "K", "V", "O", "LSE")]
SHAPE = (1, 2, 16, 64)
KV_SHAPE = (1, 1, 32, 64)


class Exported:
    """An array with __cuda_array_interface__."""

    def __init__(self, address: int, shape: tuple[int, ...], typestr: str = "<f2", **more: Any) -> None:
        self.__cuda_array_interface__ = {
            "data": (address, False), "shape": shape, "typestr": typestr, "strides": None, "version": 3, **more
        }  # fmt: skip


def make(driver: FakeDriver, problem: str = "b1.h2.kvh1.q16.kv32.d64.f16") -> Kernel:
    return kernel(answer(problem, recipe(launch("main", *ARGS))), driver)


@pytest.fixture
def driver() -> FakeDriver:
    return FakeDriver({"main": [8] * 5})


def arguments(**changes: Any) -> dict[str, Any]:
    given = {
        "q": Exported(0x1000, SHAPE),
        "k": Exported(0x2000, KV_SHAPE),
        "v": Exported(0x3000, KV_SHAPE),
        "out": Exported(0x4000, SHAPE),
    }
    return {**given, **changes}


def test_addresses_are_those_of_the_interface(driver: FakeDriver) -> None:
    given = arguments()
    assert make(driver)(**given) is given["out"]
    assert driver.launched[0].parameters == [0x1000, 0x2000, 0x3000, 0x4000, 0]


def test_the_stream_is_qs_own_unless_one_is_given(driver: FakeDriver) -> None:
    made = make(driver)
    made(**arguments(q=Exported(0x1000, SHAPE, stream=9)))
    made(**arguments(q=Exported(0x1000, SHAPE, stream=9)), stream=4)
    made(**arguments())
    assert [one.stream for one in driver.launched] == [9, 4, 0]


def test_lse_is_written_when_the_problem_asks_for_it(driver: FakeDriver) -> None:
    given = arguments(lse=Exported(0x5000, (1, 2, 16), "<f4"))
    assert make(driver, "b1.h2.kvh1.q16.kv32.d64.f16.lse")(**given) == (given["out"], given["lse"])
    assert driver.launched[0].parameters[4] == 0x5000


def test_layout_bshd_is_a_matter_of_strides(driver: FakeDriver) -> None:
    def bshd(address: int, shape: tuple[int, ...]) -> Exported:
        _, heads, rows, dim = shape
        return Exported(address, shape, strides=(2 * rows * heads * dim, 2 * dim, 2 * heads * dim, 2))

    given = {
        "q": bshd(0x1000, SHAPE), "k": bshd(0x2000, KV_SHAPE), "v": bshd(0x3000, KV_SHAPE), "out": bshd(0x4000, SHAPE)
    }  # fmt: skip
    make(driver, "b1.h2.kvh1.q16.kv32.d64.f16.bshd")(**given)
    with pytest.raises(
        InvalidArgument, match=r"q has strides \(2048, 64, 128, 1\); layout bhsd has \(2048, 1024, 64, 1\)"
    ):
        make(driver)(**given)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"q": Exported(0x1000, SHAPE, "<f4")}, "q has dtype f32; the problem's is f16"),
        ({"k": Exported(0x1000, SHAPE)}, r"k has shape \(1, 2, 16, 64\); the problem's is \(1, 1, 32, 64\)"),
        ({"v": Exported(0x3002, KV_SHAPE)}, "v is at address 0x3002; it must be a multiple of 16 bytes"),
        ({"out": None}, "out is of type NoneType; it must be a torch tensor or"),
        ({"out": bytearray(4096)}, "out is of type bytearray"),
        ({"lse": Exported(0x5000, (1, 2, 16), "<f4")}, "lse is given; problem .* does not ask for it"),
    ],
)
def test_errors_name_argument_value_and_what_is_allowed(
    driver: FakeDriver, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidArgument, match=message):
        make(driver)(**arguments(**changes))
    assert driver.launched == []


class Capsule:
    """A CPU array of numpy's, passed off as CUDA's."""

    def __init__(self, array: Any, device: tuple[int, int] = (2, 0)) -> None:
        self.array = array
        self.device = device
        self.asked_for: list[int | None] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(self, stream: int | None = None) -> Any:
        self.asked_for.append(stream)
        return self.array.__dlpack__()


def aligned(numpy: Any, shape: tuple[int, ...]) -> Any:
    """Zeros of f16 at an address that is a multiple of 16."""
    size = int(numpy.prod(shape))
    memory = numpy.zeros(size + 8, "f2")
    return memory[(-memory.ctypes.data % 16) // 2 :][:size].reshape(shape)


def test_dlpack_is_read_without_a_copy_for_the_stream_that_will_read_it(driver: FakeDriver) -> None:
    numpy = pytest.importorskip("numpy")
    q, k, v, out = (Capsule(aligned(numpy, shape)) for shape in (SHAPE, KV_SHAPE, KV_SHAPE, SHAPE))
    make(driver)(q, k, v, out, stream=40)
    assert driver.launched[0].parameters[:4] == [given.array.ctypes.data for given in (q, k, v, out)]
    assert q.asked_for == [40]


def test_dlpack_of_another_device_is_refused(driver: FakeDriver) -> None:
    numpy = pytest.importorskip("numpy")
    given = arguments(k=Capsule(aligned(numpy, KV_SHAPE), device=(1, 0)))
    with pytest.raises(InvalidArgument, match="k is on DLPack device type 1"):
        make(driver)(**given)
    given = arguments(k=Capsule(aligned(numpy, KV_SHAPE), device=(2, 1)))
    with pytest.raises(InvalidArgument, match="k is on cuda:1; the kernel was loaded on cuda:0"):
        make(driver)(**given)


def test_a_capsule_that_was_read_is_released() -> None:
    numpy = pytest.importorskip("numpy")
    from attune.cuda import dlpack

    array = aligned(numpy, SHAPE)
    capsule = array.__dlpack__()
    held = ctypes.c_ssize_t.from_address(id(array)).value
    assert dlpack.tensor_of(capsule).shape == SHAPE
    del capsule
    assert ctypes.c_ssize_t.from_address(id(array)).value < held


def test_strides_of_their_own_resolve_no_function_again(driver: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    args = [*ARGS, KernelArg("I64", 64, Stride("K", "ROW"))]
    driver.kernels["main"] = [8] * 6
    made = kernel(answer("b1.h2.kvh1.q16.kv32.d64.f16", recipe(launch("main", *args))), driver)
    monkeypatch.setattr(driver, "function", lambda library, entry: pytest.fail("resolves it"))
    made(**arguments(k=Exported(0x2000, KV_SHAPE, strides=(5120, 5120, 160, 2))))
    assert driver.launched[-1].parameters[-1] == 80


def test_arrays_with_strides_of_their_own_are_launched_with_those(driver: FakeDriver) -> None:
    driver.kernels["main"] = [8] * 6
    args = (*ARGS, KernelArg("I64", 64, Stride("K", "ROW")))
    made = kernel(answer("b1.h2.kvh1.q16.kv32.d64.f16", recipe(launch("main", *args))), driver)
    apart = (5120, 5120, 160, 2)
    for strides, expected in ((None, 64), (apart, 80), (None, 64)):
        made(**arguments(k=Exported(0x2000, KV_SHAPE, strides=strides)))
        assert driver.launched[-1].parameters[-1] == expected
    with pytest.raises(InvalidArgument, match="v has 80 elements from one row to the next; this kernel reads 64 alone"):
        made(**arguments(v=Exported(0x3000, KV_SHAPE, strides=apart)))
    backwards = (*apart[:3], 4)
    with pytest.raises(InvalidArgument, match=r"k has strides \(.*, 2\); layout bhsd has"):
        made(**arguments(k=Exported(0x2000, KV_SHAPE, strides=backwards)))
