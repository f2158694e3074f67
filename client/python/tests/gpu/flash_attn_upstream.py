"""Runs FlashAttention 2's own tests with the import exchanged, and says what passed, and what was skipped and why.

    flash_attn_upstream.py CHECKOUT [--wait S] [--sample N] [PYTEST_ARGUMENT ...]

CHECKOUT is one of Dao-AILab/flash-attention, tag v2.8.3: its tests/test_flash_attn.py is run as it is, with
attune.flash_attn as its `flash_attn`; reference computations come from the checkout. Needs a GPU, einops, triton and,
unless torch is to compute everything, a service ($ATTUNE_SERVER). A call waits up to S seconds for its kernel; of each
test function N cases are run, always the same ones, or all without --sample: hours.

attune's kernels are for inference. What a test calls with tensors that require grad runs without; the gradients that it
compares are torch's own, and tests of nothing else are skipped. So are those with dropout, which read FlashAttention's
dropout mask.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib
import inspect
import pathlib
import random
import sys
import types
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

import attune
from attune import flash_attn
from attune.background.settings import ACCEPTABLE
from attune.torch.fallback import Stats, blocks

_DROPOUT = "attune: dropout, whose mask the test reads"
_GRADIENTS = "attune: a test of gradients, which would be torch's"
_ONLY_GRADIENTS = ("bwd", "deterministic")


@contextlib.contextmanager
def counted(stats: Stats) -> Iterator[None]:
    """Counts attune's calls, as a block of replace_sdpa does, and leaves SDPA to the tests."""
    blocks.stats.append(stats)
    try:
        yield
    finally:
        blocks.stats.remove(stats)


class _Valued(torch.autograd.Function):
    """`value`, with the gradients of `graph`."""

    @staticmethod
    def forward(ctx: Any, graph: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        return value.clone()

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, None]:  # type: ignore[override]
        return grad, None


def for_tests(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` computed without gradients, its result with torch's where an input requires them."""

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        given = inspect.signature(function).bind(*args, **options).arguments
        if given.get("dropout_p", 0.0) > 0.0:
            pytest.skip(_DROPOUT)
        with torch.no_grad():
            result = function(*args, **options)
        if not any(isinstance(value, torch.Tensor) and value.requires_grad for value in given.values()):
            return result
        with counted(Stats()):  # apart
            graph = function(*args, **options)
        if isinstance(result, tuple):
            return (_Valued.apply(graph[0], result[0]), *result[1:])
        return _Valued.apply(graph, result)

    return call


def exchange(checkout: pathlib.Path) -> None:
    """Has `flash_attn` mean attune's functions, and its submodules the checkout's."""
    package = types.ModuleType("flash_attn")
    package.__path__ = [str(checkout / "flash_attn")]
    for name in flash_attn.__all__:
        setattr(package, name, for_tests(getattr(flash_attn, name)))
    interface = types.ModuleType("flash_attn.flash_attn_interface")
    interface._get_block_size_n = None  # type: ignore[attr-defined]  # only to read dropout masks
    sys.modules.update({"flash_attn": package, "flash_attn.flash_attn_interface": interface})
    importlib.invalidate_caches()


class Report:
    """What pytest is told and tells."""

    def __init__(self, sample: int | None) -> None:
        self._sample = sample
        self.outcomes = Counter[str]()
        self.skipped = Counter[str]()
        self.stats = Stats()

    @pytest.hookimpl(trylast=True)  # after -k
    def pytest_collection_modifyitems(self, items: list[pytest.Function]) -> None:
        if self._sample is not None:
            by_function: dict[str, list[pytest.Function]] = {}
            for item in items:
                by_function.setdefault(item.originalname, []).append(item)
            chosen = [random.Random(0).sample(all_, min(self._sample, len(all_))) for all_ in by_function.values()]
            items[:] = [item for some in chosen for item in some]
        for item in items:
            if any(name in item.originalname for name in _ONLY_GRADIENTS):
                item.add_marker(pytest.mark.skip(reason=_GRADIENTS))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Iterator[None]:
        with counted(self.stats):
            return (yield)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped and isinstance(report.longrepr, tuple):
            reason = report.longrepr[2].removeprefix("Skipped").removeprefix(": ")
            own = not reason.startswith("attune: ")
            self.skipped[f"FlashAttention's own: {reason or 'no reason'}" if own else reason] += 1
        if report.when == "call" or not report.passed:
            self.outcomes[report.outcome] += 1

    def lines(self) -> list[str]:
        outcomes = (f"{self.outcomes[outcome]} {outcome}" for outcome in ("passed", "failed", "skipped"))
        return [
            ", ".join(outcomes),
            *(f"  skipped {count}: {reason}" for reason, count in self.skipped.most_common()),
            f"calls: {self.stats.launched} launched attune's kernels, {self.stats.fell_back} were computed by torch",
            *(f"  torch {count}: {reason}" for reason, count in self.stats.fallbacks.most_common()),
        ]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("checkout", type=pathlib.Path)
    parser.add_argument("--wait", type=float, default=30.0, metavar="S")
    parser.add_argument("--sample", type=int, metavar="N")
    args, pytest_arguments = parser.parse_known_args()
    tests = args.checkout / "tests/test_flash_attn.py"
    if not tests.is_file():
        parser.error(f"{tests} is not there; CHECKOUT must be one of Dao-AILab/flash-attention")
    acceptable = (*ACCEPTABLE, attune.Provenance.HEURISTIC)
    attune.configure(wait=args.wait, acceptable=acceptable, never_slower=False)
    exchange(args.checkout)
    report = Report(args.sample)
    options = ["-q", "--no-header", "-p", "no:cacheprovider", "-W", "ignore::attune.AttuneWarning"]
    code = pytest.main([*options, *pytest_arguments, str(tests)], plugins=[report])
    print(*report.lines(), sep="\n")
    return int(code)


if __name__ == "__main__":
    sys.exit(main())
