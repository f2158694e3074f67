"""Measures what no kernel beats on this device: the shortest launch, the fastest reading, the fastest `mma.sync`.

The kernels are in `floors.cu`. PyTorch's own copies and reductions are no roofline: they read or compute slower.
"""

from __future__ import annotations

from pathlib import Path

import torch

from attune_bench.device import Facts
from attune_bench.graph import Replay, elapsed_us
from attune_bench.nvrtc import INT, LONG, POINTER, Module, compile_cubin
from attune_bench.records import Floors
from attune_bench.statistics import Interval, median_interval

SAMPLES = 15
EMPTY_RUNS = 1000
READ_BYTES = 4 << 30
READ_BLOCKS = 32  # an SM, several times what is resident: the last ones to end are a small part
MMA_ITERATIONS = 20000
MMA_BLOCKS = 4  # an SM, all resident at once: the kernel's launch bounds
MMA_FLOPS = 2 * 16 * 8 * 16  # of one m16n8k16
MMA_CHAINS = 8  # kChains of floors.cu


def _rate(amount: float, times_us: list[float]) -> Interval:
    """`amount` a run over each time, per second."""
    return median_interval([amount / us * 1e6 for us in times_us])


class _Floors:
    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        source = Path(__file__).with_name("floors.cu").read_text()
        torch.cuda.synchronize()  # a context must be there
        self._module = Module(compile_cubin(source, facts.capability))
        self._sink = torch.zeros(1, dtype=torch.int32, device="cuda")

    def _launch(self, entry: str, grid: int, block: int, *arguments: tuple[int, type]) -> None:
        self._module.launch(entry, grid, block, arguments, torch.cuda.current_stream().cuda_stream)

    def _times_us(self, run) -> list[float]:
        for _ in range(3):
            run()
        return [elapsed_us(run) for _ in range(SAMPLES)]

    def launch_us(self) -> Interval:
        """Of one empty kernel among many in a graph."""
        self._launch("empty", 1, 32)
        replay = Replay(lambda _: self._launch("empty", 1, 32), range(EMPTY_RUNS), EMPTY_RUNS)
        for _ in range(3):
            replay.sample_us()
        return median_interval([replay.sample_us() for _ in range(SAMPLES)])

    def read_gbs(self) -> Interval:
        """10^9 bytes/s of reading several GiB of random bits, far more than the L2 holds."""
        size = min(READ_BYTES, self._facts.memory_bytes // 8)
        words = torch.empty(size // 8, dtype=torch.int64, device="cuda").random_()
        count = (words.numel() * 8) // 16
        arguments = (words.data_ptr(), POINTER), (count, LONG), (self._sink.data_ptr(), POINTER)
        times = self._times_us(lambda: self._launch("read_all", self._facts.sm_count * READ_BLOCKS, 512, *arguments))
        rate = _rate(count * 16 / 1e9, times)
        del words
        torch.cuda.empty_cache()
        return rate

    def mma_tflops(self) -> Interval:
        """10^12 operations/s of m16n8k16 with f16 in and f32 out, from registers, 32 warps an SM."""
        grid, warps = self._facts.sm_count * MMA_BLOCKS, 8
        arguments = (MMA_ITERATIONS, INT), (self._sink.data_ptr(), POINTER)
        times = self._times_us(lambda: self._launch("multiply", grid, warps * 32, *arguments))
        return _rate(grid * warps * MMA_ITERATIONS * MMA_CHAINS * MMA_FLOPS / 1e12, times)


def measure_floors(facts: Facts) -> Floors:
    """All three, in about a second."""
    floors = _Floors(facts)
    return Floors(launch_us=floors.launch_us(), read_gbs=floors.read_gbs(), mma_tflops=floors.mma_tflops())
