"""Answers, code and contests before calls need them."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable
from time import monotonic

import torch
from torch import Tensor

from attune.arguments import seconds, several
from attune.background.contest import PAIRS, WARM_UP, is_contested
from attune.background.entry import Entry
from attune.background.head_dims import as_called
from attune.problem import Problem
from attune.torch import process
from attune.torch.dispatch import attend, attend_options
from attune.torch.options import Options
from attune.torch.problem_of_tensors import DTYPES

_BUSY_CYCLES = 30_000_000  # of the device's clock: longer than the host takes for the calls of a contest
_ROUNDS = 4

_DTYPES = {name: dtype for dtype, name in DTYPES.items()}


def warm(problems: Iterable[Problem | str] = (), *, device: int | None = None, timeout: float = 60.0) -> bool:
    """Waits until the service has answered for every shape that was asked for so far, and for `problems`, and their
    kernels are loaded: later calls run them. False when `timeout` seconds were too few.

    Before a CUDA graph is captured, call what it captures once (SDPA computes), then this. `problems` are those of GPU
    `device` of this process, the current one by default. Whether there is an answer says `attune.state`. Kernels that
    are still to be timed against SDPA are timed now, on tensors of their problems in the current stream, which is
    waited for.
    """
    asked = [as_called(Problem.of(problem)) for problem in several("problems", problems, "'b2.h8.q512.d64.f16'")]
    timeout = seconds("timeout", timeout)
    kernels = process.kernel_cache()
    until = monotonic() + timeout
    for problem in asked:
        kernels.ask(problem, torch.cuda.current_device() if device is None else device)
    answered = kernels.wait(timeout)
    decide(itertools.takewhile(lambda _: monotonic() < until, kernels.contested()))
    return answered


def decide(entries: Iterable[Entry]) -> None:
    """Ends these entries' contests by calls on tensors of their problems: what is captured afterwards runs what is
    faster on the device. Those whose tensors there is no memory for go on."""
    for entry in entries:
        if entry.key is None:
            continue
        with contextlib.suppress(torch.OutOfMemoryError):
            _decide(entry, *entry.key)


@torch.inference_mode()
def _decide(entry: Entry, problem: Problem, device: int) -> None:
    contest = entry.contest
    if contest is None:
        return
    contest.for_graphs = True
    try:
        with torch.cuda.device(device), torch.autocast("cuda", enabled=False):
            tensors = tensors_of(problem, device)
            for _ in range(WARM_UP):
                _attend(problem, *tensors)
            for _ in range(_ROUNDS):
                torch.cuda._sleep(_BUSY_CYCLES)
                for _ in range(2 * PAIRS):
                    _attend(problem, *tensors)
                    if entry.contest is not contest:
                        return
                torch.cuda.current_stream().synchronize()
    finally:
        contest.for_graphs = False


def _attend(problem: Problem, query: Tensor, key: Tensor, value: Tensor) -> None:
    fewer = problem.heads_kv != problem.heads_q  # with enable_gqa SDPA may choose another backend
    if is_contested(problem):
        attend(None, query, key, value, None, 0.0, problem.mask == "causal", None, fewer)
        return
    causal = {"none": None, "causal": "top-left"}.get(problem.mask, "bottom-right")
    sinks = query.new_zeros(problem.heads_q, dtype=torch.float32) if problem.sinks else None
    options = Options(causal, problem.window or None, problem.softcap, sinks, problem.lse, None, fewer)
    attend_options(None, query, key, value, None, 0.0, options)


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
