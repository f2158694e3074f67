"""Contests between kernels and torch's SDPA, as it is set up: in calls, and before CUDA graphs are captured."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable
from typing import TypeVar

import torch
from torch import Tensor

from attune.background.contest import PAIRS, WARM_UP
from attune.background.kernel_cache import Entry
from attune.problem import Problem
from attune.torch.fallback import Stats
from attune.torch.problem_of_tensors import DTYPES

T = TypeVar("T")

_BACKENDS = {0: "math", 1: "flash", 2: "efficient", 3: "cudnn"}  # by torch._C._SDPBackend
_ENABLED = {
    "math": torch.backends.cuda.math_sdp_enabled,
    "flash": torch.backends.cuda.flash_sdp_enabled,
    "efficient": torch.backends.cuda.mem_efficient_sdp_enabled,
    "cudnn": torch.backends.cuda.cudnn_sdp_enabled,
}
# What makes FlashAttention 3 or 4 the flash backend; earlier versions of torch have none of it.
_VERSIONS = {
    name: getattr(torch._C, f"_get_{name}_sdp_enabled")
    for name in ("fa3", "fa4")
    if hasattr(torch._C, f"_get_{name}_sdp_enabled")
}
_BUSY_CYCLES = 30_000_000  # of the device's clock: longer than the host takes for the calls of a contest
_ROUNDS = 4

_DTYPES = {name: dtype for dtype, name in DTYPES.items()}


def _priorities() -> tuple[str, ...]:
    order = getattr(torch._C, "_get_sdp_priority_order", lambda: list(_BACKENDS))()
    return tuple(_BACKENDS[int(backend)] for backend in order if int(backend) in _BACKENDS)


_USUAL = _priorities()


def rival() -> str:
    """The contender's name of SDPA with the backends that are enabled now, first those that it prefers."""
    enabled = [name for name in _priorities() if _ENABLED[name]()]
    return _name((*enabled, *(name for name, is_enabled in _VERSIONS.items() if is_enabled())))


@functools.cache
def _name(backends: tuple[str, ...]) -> str:
    return f"torch-sdpa {torch.__version__}" + ("" if backends == _USUAL else f" ({', '.join(backends)})")


def take_turn(
    stats: Stats | None, entry: Entry, stream: int, ours: Callable[[Callable[..., None]], T], theirs: Callable[[], T]
) -> T:
    """A call whose kernel is being timed: `ours` of its launch, or `theirs`. Raises Unsuitable where it takes no part,
    and is to be computed without the kernel."""
    kernel, contest = entry.kernel, entry.contest
    if kernel is None or contest is None:  # decided meanwhile, or refused
        raise entry.unsuitable.again()
    with contest.turn(stream) as turn:
        if turn.ours:
            return ours(kernel.launch)
        if turn.number < 0:
            raise turn.unsuitable.again()
        result = theirs()
    if stats is not None:
        stats.fallbacks[turn.unsuitable.reason.value] += 1
    return result


def decide(entries: Iterable[Entry], attend: Callable[[Tensor, Tensor, Tensor, bool], Tensor]) -> None:
    """Ends these entries' contests by calls of `attend` on tensors of their problems: what is captured afterwards runs
    what is faster on the device. Those whose tensors there is no memory for go on."""
    for entry in entries:
        if entry.key is None:
            continue
        with contextlib.suppress(torch.OutOfMemoryError):
            _decide(entry, *entry.key, attend)


@torch.inference_mode()
def _decide(entry: Entry, problem: Problem, device: int, attend: Callable[..., Tensor]) -> None:
    contest = entry.contest
    if contest is None:
        return
    contest.for_graphs = True
    try:
        with torch.cuda.device(device), torch.autocast("cuda", enabled=False):
            tensors = tensors_of(problem, device)
            for _ in range(WARM_UP):
                attend(*tensors, problem.mask == "causal")
            for _ in range(_ROUNDS):
                torch.cuda._sleep(_BUSY_CYCLES)
                for _ in range(2 * PAIRS):
                    attend(*tensors, problem.mask == "causal")
                    if entry.contest is not contest:
                        return
                torch.cuda.current_stream().synchronize()
    finally:
        contest.for_graphs = False


def tensors_of(problem: Problem, device: int | str) -> tuple[Tensor, Tensor, Tensor]:
    """Random ones."""

    def made(heads: int, length: int) -> Tensor:
        swapped = problem.layout == "bshd"
        sizes = (length, heads) if swapped else (heads, length)
        shape = (problem.batch, *sizes, problem.head_dim)
        tensor = torch.randn(shape, dtype=_DTYPES[problem.dtype], device=device)
        return tensor.transpose(1, 2) if swapped else tensor

    return (
        made(problem.heads_q, problem.seq_q),
        made(problem.heads_kv, problem.seq_kv),
        made(problem.heads_kv, problem.seq_kv),
    )
