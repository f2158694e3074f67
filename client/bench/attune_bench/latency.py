"""What a call costs from Python, without a graph: the host's wall time."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from statistics import median

import torch

from attune_bench.records import Eager

ROUNDS = 7
CALLS = 20  # in a row, far fewer than fill the driver's queue
SHARE_S = 0.05  # a round of one contestant takes no longer, however slow it is: then it makes fewer calls


def _call_us(run: Callable[[], object], calls: int) -> float:
    """Until a call returns, with nothing queued before the first."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(calls):
        run()
    spent = time.perf_counter() - start
    torch.cuda.synchronize()
    return spent / calls * 1e6


def _latency_us(run: Callable[[], object]) -> float:
    """Until a call's result is there."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    run()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) * 1e6


def eager_latencies(
    runs: Mapping[str, Callable[[], object]],
    run_us: Mapping[str, float],
    selected: Callable[[str], AbstractContextManager],
    seed: int,
) -> dict[str, Eager]:
    """Medians over interleaved rounds.

    Args:
        runs: by contestant, one call; each was called before.
        run_us: by contestant, what a run takes on the device, in microseconds.
        selected: of a contestant, within which its calls are made; entering it is not timed.
        seed: of the orders.
    """
    order = random.Random(seed)
    names = list(runs)
    calls = {name: max(1, min(CALLS, int(SHARE_S * 1e6 / run_us[name]))) for name in names}
    call: dict[str, list[float]] = {name: [] for name in names}
    latency: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(ROUNDS):
        order.shuffle(names)
        for name in names:
            with selected(name):
                call[name].append(_call_us(runs[name], calls[name]))
                latency[name] += [_latency_us(runs[name]) for _ in range(max(1, calls[name] // 4))]
    return {name: Eager(median(call[name]), median(latency[name])) for name in runs}
