"""The examples of CuPy and JAX, where numpy passes for CuPy and a driver for CUDA's that computes on the CPU."""

from __future__ import annotations

import importlib
import math
import pathlib
import sys
from collections.abc import Sequence
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from answers import answer
from fake_driver import FakeDriver, kernel, launch, recipe

from attune.cuda import Kernel
from attune.errors import NotFound
from attune.values import KernelArg

numpy = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")

from computing_kernel import memory  # noqa: E402

PROBLEM = "b1.h4.kvh2.q16.d32.f16.causal"
OF_Q, OF_K = (1, 4, 16, 32), (1, 2, 16, 32)
STREAM = 7


class Computing(FakeDriver):
    """Whose kernel computes PROBLEM."""

    def launch(self, *given: Any) -> tuple[int]:
        result = super().launch(*given)
        q, k, v, out = (
            memory(address, torch.float16, *shape)
            for address, shape in zip(self.launched[-1].parameters[:4], (OF_Q, OF_K, OF_K, OF_Q), strict=True)
        )
        k, v = (x.float().repeat_interleave(2, 1) for x in (k, v))
        logits = (q.float() @ k.mT / math.sqrt(32)).masked_fill(torch.ones(16, 16).triu(1).bool(), -math.inf)
        out.copy_(logits.softmax(-1) @ v)
        return result


class Array(numpy.ndarray):
    """numpy's, as a CuPy array shows itself."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {**self.__array_interface__, "stream": STREAM}


@pytest.fixture
def driver() -> Computing:
    return Computing({"main": [8] * 4})


@pytest.fixture
def made(driver: Computing) -> Kernel:
    args = [KernelArg(kind) for kind in ("Q", "K", "V", "O")]
    return kernel(answer(PROBLEM, recipe(launch("main", *args))), driver)


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = ModuleType("cupy")
    module.__dict__.update({name: getattr(numpy, name) for name in ("repeat", "where", "tri", "exp")})
    module.empty = lambda shape, dtype: numpy.empty(shape, dtype).view(Array)
    module.empty_like = lambda array: module.empty(array.shape, array.dtype)
    module.cuda = SimpleNamespace(get_current_stream=lambda: SimpleNamespace(ptr=STREAM))
    monkeypatch.setitem(sys.modules, "cupy", module)
    return module


def example(name: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(pathlib.Path(__file__).resolve().parents[2] / "examples"))
    for module in ("cupy_attention", "jax_attention"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    return importlib.import_module(name)


def random(*shape: int) -> Any:
    return numpy.random.default_rng(math.prod(shape)).standard_normal(shape).astype("float16")


def test_cupys_arrays_are_read_and_written_in_place(
    cupy: ModuleType, driver: Computing, made: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = example("cupy_attention", monkeypatch)
    q, k, v = (random(*shape).view(Array) for shape in (OF_Q, OF_K, OF_K))
    out = module.attention(made, q, k, v)
    assert float(abs(out - module.in_fp32(q, k, v, True)).max()) < 2e-3
    assert float(abs(out - module.in_fp32(q, k, v, False)).max()) > 0.1
    assert [one.stream for one in driver.launched] == [STREAM]


def test_jaxs_arrays_are_read_in_place_and_the_result_is_one(
    cupy: ModuleType, driver: Computing, made: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    jax = pytest.importorskip("jax")
    module = example("jax_attention", monkeypatch)

    class OnGpu:
        """A JAX array as it is on a GPU: one on the CPU knows no streams."""

        def __init__(self, array: Any) -> None:
            self.array, self.shape = array, array.shape

        def __dlpack_device__(self) -> tuple[int, int]:
            return 2, 0

        def __dlpack__(self, *, stream: int) -> Any:
            assert stream == STREAM
            return self.array.__dlpack__()

    q, k, v = (jax.numpy.asarray(random(*shape)) for shape in (OF_Q, OF_K, OF_K))
    monkeypatch.setattr(jax, "block_until_ready", lambda arrays: [array.array.block_until_ready() for array in arrays])
    out = module.attention(made, OnGpu(q), OnGpu(k), OnGpu(v))
    assert isinstance(out, jax.Array)
    assert float(abs(out - module.in_fp32(q, k, v, True)).max()) < 2e-3
    assert [one.stream for one in driver.launched] == [STREAM]


def test_a_problem_that_nobody_tuned_is_tuned_first(
    cupy: ModuleType, made: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = example("cupy_attention", monkeypatch)
    tuned: list[str] = []

    def best(problem: str, acceptable: Sequence[str] = (), artifact: bool = False) -> Any:
        if tuned:
            return made.answer
        if acceptable and "HEURISTIC" not in acceptable:
            raise NotFound("a HEURISTIC answer, which is not acceptable")
        return "a guess"

    tuning = SimpleNamespace(result=lambda: tuned.append("done"))
    client = SimpleNamespace(best=best, tune=lambda problem, max_time: tuning)
    monkeypatch.setattr(module.attune, "load", lambda answer: answer)
    assert module.kernel_for(client, PROBLEM) is made.answer
    assert tuned == ["done"]
