"""Sinks, bounds, lengths and tables as a kernel's arguments."""

from __future__ import annotations

from typing import Any

import pytest
from answers import answer
from fake_driver import FakeDriver, kernel, launch, recipe

from attune.cuda import Kernel
from attune.errors import InvalidArgument
from attune.values import KernelArg

MORE = ("SINKS", "Q_BOUNDS", "KV_BOUNDS", "KV_LENGTHS", "PAGE_TABLE", "K_SCALE", "V_SCALE")
ROLES = ("Q", "K", "V", "O", "LSE", *MORE)


class Exported:
    """An array with __cuda_array_interface__."""

    def __init__(self, address: int, shape: tuple[int, ...], typestr: str = "<f2", **more: Any) -> None:
        self.__cuda_array_interface__ = {
            "data": (address, False), "shape": shape, "typestr": typestr, "strides": None, "version": 3, **more
        }  # fmt: skip


@pytest.fixture
def driver() -> FakeDriver:
    return FakeDriver({"main": [8] * len(ROLES)})


def make(driver: FakeDriver, problem: str) -> Any:
    return kernel(answer(problem, recipe(launch("main", *map(KernelArg, ROLES)))), driver)


def ints(address: int, *shape: int) -> Exported:
    return Exported(address, shape, "<i4")


VARLEN = {
    "q": Exported(0x1000, (10, 4, 64)),
    "k": Exported(0x2000, (17, 2, 64)),
    "v": Exported(0x3000, (17, 2, 64)),
    "out": Exported(0x4000, (10, 4, 64)),
    "cu_seqlens_q": ints(0x5000, 4),
    "cu_seqlens_k": ints(0x6004, 4),
}
PAGED = {
    "q": Exported(0x1000, (3, 4, 1, 64)),
    "k": Exported(0x2000, (9, 16, 2, 64)),
    "v": Exported(0x3000, (9, 16, 2, 64)),
    "out": Exported(0x4000, (3, 4, 1, 64)),
    "seqused_k": ints(0x5000, 3),
    "block_table": ints(0x6000, 3, 3),
}


def test_a_plain_problem_passes_null_for_what_it_has_not(driver: FakeDriver) -> None:
    make(driver, "b1.h2.q16.d64.f16").launch(1, 2, 3, 4, 0, 7)
    assert driver.launched[0].parameters == [1, 2, 3, 4, *8 * (0,)]


def test_a_launch_passes_more_addresses_by_role_and_call(driver: FakeDriver) -> None:
    made = make(driver, "b3.h4.kvh2.q7.kv9.d64.f16.varlen")
    made.launch(1, 2, 3, 4, 5, 7, (6, 7, 8, 9, 10, 11, 12))
    made.launch(1, 2, 3, 4, 5, 7, (16, 17, 18, 19, 20, 21, 22))
    assert [one.parameters[5:] for one in driver.launched] == [[*range(6, 13)], [*range(16, 23)]]


def test_with_several_devices_more_addresses_are_passed_too() -> None:
    driver = FakeDriver({"main": [8] * len(ROLES)}, device_count=2)
    make(driver, "b3.h4.kvh2.q7.kv9.d64.f16.varlen").launch(1, 2, 3, 4, 5, 7, (6, 7, 8, 9, 10, 11, 12))
    assert driver.launched[0].parameters == [*range(1, 13)]


def test_arrays_of_a_varlen_problem(driver: FakeDriver) -> None:
    lse, sinks = Exported(0x7000, (4, 10), "<f4"), Exported(0x8004, (4,), "<f4")
    made = make(driver, "b3.h4.kvh2.q7.kv9.d64.f16.sinks.varlen.lse")
    assert made(**VARLEN, lse=lse, sinks=sinks) == (VARLEN["out"], lse)
    addresses = [0x1000, 0x2000, 0x3000, 0x4000, 0x7000, 0x8004, 0x5000, 0x6004]
    assert driver.launched[0].parameters == [*addresses, *4 * (0,)]


def test_arrays_of_other_libraries_go_with_torchs(driver: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    numpy = pytest.importorskip("numpy")
    read: list[str] = []
    monkeypatch.setattr(Kernel, "_read", lambda self, given, stream: read.extend(name for name, _ in given) or {})
    monkeypatch.setattr(Kernel, "_for", lambda self, tensors: self)
    monkeypatch.setattr(Kernel, "_launch_on", lambda self, tensors, stream, out, lse: out)
    made = make(driver, "b3.h4.kvh2.q7.kv9.d64.f16.sinks.varlen")
    q = torch.zeros(10, 4, 64).half()
    assert made(q, q, q, q, stream=7, sinks=numpy.zeros(4, "f4"), cu_seqlens_q=numpy.zeros(4, "i4")) is q
    assert read[5:7] == ["sinks", "cu_seqlens_q"]


def test_arrays_of_a_paged_problem(driver: FakeDriver) -> None:
    make(driver, "b3.h4.kvh2.q1.kv33.d64.f16.page16")(**PAGED)
    assert driver.launched[0].parameters == [0x1000, 0x2000, 0x3000, 0x4000, *4 * (0,), 0x5000, 0x6000, 0, 0]


def test_arrays_of_a_paged_problem_of_tokens(driver: FakeDriver) -> None:
    given = {**PAGED, "q": VARLEN["q"], "out": VARLEN["out"], "cu_seqlens_q": VARLEN["cu_seqlens_q"]}
    make(driver, "b3.h4.kvh2.q7.kv33.d64.f16.varlen.page16")(**given)
    assert driver.launched[0].parameters[5:] == [0, 0x5000, 0, 0x5000, 0x6000, 0, 0]


@pytest.mark.parametrize(
    ("problem", "given", "message"),
    [
        ("varlen", {"cu_seqlens_q": ints(0x5000, 3)}, r"cu_seqlens_q has shape \(3,\); the problem's is \(4,\)"),
        ("varlen", {"cu_seqlens_q": Exported(0x5000, (4,), "<i8")}, "cu_seqlens_q has dtype <i8; the problem's is i32"),
        (
            "varlen",
            {"cu_seqlens_k": ints(0x6002, 4)},
            "cu_seqlens_k is at address 0x6002; it must be a multiple of 4 bytes",
        ),
        ("varlen", {"cu_seqlens_k": None}, "cu_seqlens_k is of type NoneType"),
        ("varlen", {"out": Exported(0x4000, (11, 4, 64))}, r"out has shape \(11, 4, 64\); .* is \(10, 4, 64\)"),
        ("varlen", {"v": Exported(0x3000, (16, 2, 64))}, r"v has shape \(16, 2, 64\); the problem's is \(17, 2, 64\)"),
        (
            "varlen",
            {"k": Exported(0x2000, (17, 2, 64), strides=(512, 128, 2))},
            r"k has strides \(256, 64, 1\); a contiguous array has \(128, 64, 1\)",
        ),
        ("varlen", {"sinks": Exported(0x8000, (4,), "<f4")}, "sinks is given; problem .* does not ask for it"),
        ("paged", {"block_table": ints(0x6000, 3, 2)}, r"block_table has shape \(3, 2\); the problem's is \(3, 3\)"),
        ("paged", {"k": Exported(0x2000, (9, 8, 2, 64))}, r"k has shape \(9, 8, 2, 64\); .* is \(9, 16, 2, 64\)"),
        ("paged", {"cu_seqlens_k": ints(0x6000, 4)}, "cu_seqlens_k is given; problem .* does not ask for it"),
    ],
)
def test_errors_name_argument_value_and_what_is_allowed(
    driver: FakeDriver, problem: str, given: dict[str, Any], message: str
) -> None:
    text, arguments = {
        "varlen": ("b3.h4.kvh2.q7.kv9.d64.f16.varlen", VARLEN),
        "paged": ("b3.h4.kvh2.q1.kv33.d64.f16.page16", PAGED),
    }[problem]
    with pytest.raises(InvalidArgument, match=message):
        make(driver, text)(**{**arguments, **given})
    assert driver.launched == []
