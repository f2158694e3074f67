"""What a known call costs the host, counted and not timed: functions of Python's and of C's that are entered, torch's
operations, and what the driver is told."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
from answers import answer
from fake_driver import FakeDriver, kernel, launch, recipe
from fake_service import Service

from attune.cuda.launch import MORE_TENSORS, TENSORS
from attune.errors import NotFound
from attune.values import KernelArg

torch = pytest.importorskip("torch")

from tensors import half, ints  # noqa: E402

import attune  # noqa: E402

Q, K, V = half(1, 4, 1, 64), half(1, 4, 48, 64), half(1, 4, 48, 64)
TOKENS = half(1, 4, 64), half(48, 4, 64), half(48, 4, 64)
BOUNDS = ints(0, 1), ints(0, 48)
ROWS, PAGES, TABLE, USED = half(1, 1, 4, 64), [half(3, 16, 4, 64) for _ in range(2)], ints([0, 1, 2]), ints(48)
SINKS = torch.zeros(4)
CACHE = half(1, 4, 64, 64)[:, :, :48]
NO_OPTIONS = (None, None, 0.0, None, False, None, False)

PLAIN = "plain"
CALLS: dict[str, Callable[[], Any]] = {
    PLAIN: lambda: attune.attention(Q, K, V),
    "in a block": lambda: torch.nn.functional.scaled_dot_product_attention(Q, K, V),
    "softcap": lambda: attune.attention(Q, K, V, softcap=30.0),
    "window": lambda: attune.attention(Q, K, V, causal="bottom-right", window=16),
    "another scale": lambda: attune.attention(Q, K, V, scale=0.3),
    "sliced cache": lambda: attune.attention(Q, CACHE, CACHE),
    "sinks": lambda: attune.attention(Q, K, V, sinks=SINKS),
    "return_lse": lambda: attune.attention(Q, K, V, return_lse=True),
    "varlen": lambda: attune.attention_varlen(*TOKENS, *BOUNDS, 1, 48),
    "paged": lambda: attune.attention_paged(ROWS, *PAGES, TABLE, USED),
    "operator": lambda: torch.ops.attune.attention.default(Q, K, V),
    "operator with options": lambda: torch.ops.attune.attention_options.default(
        Q, K, V, *NO_OPTIONS[:4], True, None, False
    ),
    "varlen operator": lambda: torch.ops.attune.attention_varlen.default(*TOKENS, *BOUNDS, 1, 48, *NO_OPTIONS),
    "paged operator": lambda: torch.ops.attune.attention_paged.default(
        ROWS, *PAGES, TABLE, USED, None, None, *NO_OPTIONS
    ),
}
# Functions entered beyond those of a plain call, Python's and C's, and tensors made beyond its one.
MORE = {
    "in a block": (2, 0, 0),
    "softcap": (0, 0, 0),
    "window": (0, 0, 0),
    "another scale": (0, 1, 0),  # in FakeKernel
    "sliced cache": (0, 3, 0),
    "sinks": (1, 3, 0),
    "return_lse": (0, 2, 1),
    "varlen": (3, 6, 0),
    "paged": (3, 6, 0),
    "operator": (0, 1, 0),  # itself
    "operator with options": (0, 4, 1),
    "varlen operator": (3, 10, 1),  # an empty log-sum-exp
    "paged operator": (3, 10, 1),
}
MASK, IN_FP32 = torch.ones(1, 48, dtype=torch.bool), [x.float() for x in (Q, K, V)]
LEFT: dict[str, Callable[[], Any]] = {
    "a mask": lambda: attune.attention(Q, K, V, MASK),
    "fp32": lambda: attune.attention(*IN_FP32),
    "no answer": lambda: attune.attention(Q, K, V),
}
# Functions entered in all, SDPA among them.
MOST = {"a mask": (11, 3), "fp32": (15, 5), "no answer": (11, 17)}
MAKES_TENSORS = {"empty_like", "new_empty", "empty", "clone", "contiguous", "copy_"}


class Entered:
    """Counts of the functions that `call` enters: Python's, C's, and those of C's that make tensors."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self.python = self.c = self.tensors = 0
        sys.setprofile(self._note)
        try:
            call()
        finally:
            sys.setprofile(None)

    def _note(self, frame: Any, event: str, what: Any) -> None:
        self.python += event == "call"
        self.c += event == "c_call"
        self.tensors += event == "c_call" and what.__name__ in MAKES_TENSORS

    def beyond(self, other: Entered) -> tuple[int, int, int]:
        return self.python - other.python, self.c - other.c, self.tensors - other.tensors


def known(name: str, calls: dict[str, Callable[[], Any]]) -> Entered:
    """Of a call that was made before."""
    with torch.no_grad(), attune.replace_sdpa():
        for _ in range(3):
            calls[name]()
        return Entered(calls[name])


@pytest.mark.parametrize("name", MORE)
def test_a_known_call_enters_few_functions_more_than_a_plain_one(service: Service, name: str) -> None:
    more = known(name, CALLS).beyond(known(PLAIN, CALLS))
    assert all(found <= most for found, most in zip(more, MORE[name], strict=True)), more


@pytest.mark.filterwarnings("ignore::attune.torch.AttuneWarning")
@pytest.mark.parametrize("name", LEFT)
def test_a_call_that_is_known_to_be_torchs_is_left_to_it_by_few_functions(service: Service, name: str) -> None:
    service.refuses_with = NotFound("no answer")
    found = known(name, LEFT)
    most = MOST[name]
    assert found.python <= most[0], found.python
    assert found.c <= most[1], found.c


@pytest.mark.parametrize("more", [(), (1, 2, 3, 4, 5, 6, 7)])
def test_a_launch_packs_its_parameters_and_tells_the_driver_of_nothing_else(more: tuple[int, ...]) -> None:
    driver = FakeDriver({"main": [8] * 12})
    arguments = [KernelArg(kind) for kind in (*TENSORS, *MORE_TENSORS)]
    made = kernel(answer("b1.h2.q16.d64.f16", recipe(launch("main", *arguments))), driver)
    made.launch(1, 2, 3, 4, 5, 6)
    made._driver = None  # type: ignore[assignment]
    made._launch_ex = lambda *given: (0,)
    found = Entered(lambda: made.launch(1, 2, 3, 4, 5, 6, more))
    assert found.python <= 3, "this function, launch and the driver's"
    assert found.c <= 4, found.c
