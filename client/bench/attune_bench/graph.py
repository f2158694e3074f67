"""GPU time by CUDA events, and CUDA graphs of back-to-back runs over rotating inputs."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from typing import TypeVar

import torch

# The stream waits this many cycles, about 200 us, while the host queues what is timed: no launch latency is inside.
WAIT_CYCLES = 400_000

SAMPLE_US = 2000.0  # a graph is made about this long
PROBE_US = 200.0  # and, to find its length, first this long
MOST_RUNS = 1000

Input = TypeVar("Input")


def elapsed_us(work: Callable[[], object]) -> float:
    """Device time of what `work` queues on the current stream, in microseconds."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda._sleep(WAIT_CYCLES)
    start.record()
    work()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) * 1e3


class Replay:
    """A graph of `runs` calls of `run`, the i-th on `inputs[i % len(inputs)]`.

    `run` was called before, so that nothing is compiled, loaded or allocated for good during the capture. What it
    allocates comes from the graph's own pool, which is freed with it.
    """

    def __init__(self, run: Callable[[Input], object], inputs: Sequence[Input], runs: int) -> None:
        self.runs = runs
        self._graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        with torch.cuda.graph(self._graph):
            for i in range(runs):
                run(inputs[i % len(inputs)])
        torch.cuda.synchronize()

    def sample_us(self) -> float:
        """One replay, divided by its runs."""
        return elapsed_us(self._graph.replay) / self.runs


def runs_for(us: float, length_us: float) -> int:
    """How many runs of `us` make a graph of about `length_us`."""
    return max(1, min(MOST_RUNS, round(length_us / us)))


def sized_replay(run: Callable[[Input], object], inputs: Sequence[Input]) -> Replay:
    """A warmed-up graph of about SAMPLE_US; a run longer than that makes a graph of one."""
    rough = min(elapsed_us(lambda: run(inputs[0])) for _ in range(3))
    probe = Replay(run, inputs, runs_for(rough, PROBE_US))
    probe.sample_us()
    replay = Replay(run, inputs, runs_for(probe.sample_us(), SAMPLE_US))
    del probe
    previous = replay.sample_us()
    for _ in range(5):
        latest = replay.sample_us()
        if abs(latest - previous) <= 0.05 * latest:
            break
        previous = latest
    return replay


def free_memory() -> None:
    """Gives what dropped graphs and tensors held back to the device."""
    gc.collect()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
