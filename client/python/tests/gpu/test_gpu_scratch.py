"""Scratch and shared memory with a recipe made for it: two launches, the second right only if the first's counter
began at zero and if its results came through scratch."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from answers import answer
from nvrtc_ptx import compiled

import attune
from attune.values import KernelArg, KernelLaunch, LaunchRecipe, ScratchBuffer

torch = pytest.importorskip("torch")

BLOCKS = 8
SHARED_BYTES = 64 << 10  # more than a launch may ask for without being allowed to

SOURCE = b"""
extern "C" __global__ void first(const unsigned short* q, unsigned* partial, unsigned* counter) {
  extern __shared__ unsigned shared[];
  const unsigned last = 64 * 1024 / 4 - 1 - threadIdx.x;
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  shared[last] = q[i];
  __syncthreads();
  partial[i] = shared[last];
  if (threadIdx.x == 0) atomicAdd(counter, 1);
}
extern "C" __global__ void second(unsigned short* o, const unsigned* partial, unsigned* counter, int blocks) {
  const bool began_at_zero = *counter == blocks;
  __syncthreads();
  for (unsigned i = threadIdx.x; i < 1024; i += blockDim.x) o[i] = began_at_zero ? partial[i] : 0xffff;
  if (threadIdx.x == 0) *counter = 0;
}
"""


@pytest.fixture(scope="module")
def kernel() -> attune.Kernel:
    arg = KernelArg
    artifact = compiled(SOURCE)
    first = (arg("Q"), arg("SCRATCH", 0), arg("SCRATCH", 1))
    second = (arg("O"), arg("SCRATCH", 0), arg("SCRATCH", 1), arg("I32", BLOCKS))
    recipe = LaunchRecipe(
        (ScratchBuffer("partial", 4096, False), ScratchBuffer("counter", 4, True)),
        (
            KernelLaunch("first", (BLOCKS, 1, 1), (128, 1, 1), SHARED_BYTES, first),
            KernelLaunch("second", (1, 1, 1), (256, 1, 1), 0, second),
        ),
        0,
    )
    return attune.load(answer("b1.h1.q16.d64.f16", recipe, artifact=artifact))


def query(seed: int) -> Any:
    generator = torch.Generator("cuda").manual_seed(seed)
    return torch.randn((1, 1, 16, 64), generator=generator, device="cuda").half()


def test_every_run_finds_its_counter_zero(kernel: attune.Kernel) -> None:
    for seed in range(10):
        q = query(seed)
        assert torch.equal(kernel(q, q, q), q)


def test_replays_and_eager_runs_on_other_streams_do_not_mix(kernel: attune.Kernel) -> None:
    inputs = [query(seed) for seed in range(4)]
    outs = [torch.empty_like(q) for q in inputs]
    graphs = [torch.cuda.CUDAGraph() for _ in inputs]
    for graph, q, out in zip(graphs, inputs, outs, strict=True):
        with torch.cuda.graph(graph):
            for _ in range(10):
                kernel(q, q, q, out)
    streams = [torch.cuda.Stream() for _ in inputs]
    eager = []
    for _ in range(50):
        for graph, stream, q in zip(graphs, streams, inputs, strict=True):
            with torch.cuda.stream(stream):
                graph.replay()
            eager.append((kernel(q, q, q), q))
    torch.cuda.synchronize()
    assert all(torch.equal(out, q) for out, q in zip(outs, inputs, strict=True))
    assert all(torch.equal(out, q) for out, q in eager)


def test_threads_on_one_stream_do_not_come_between_two_launches(kernel: attune.Kernel) -> None:
    results: list[tuple[Any, Any]] = []

    def work(seed: int) -> None:
        q = query(seed)
        results.extend((kernel(q, q, q), q) for _ in range(100))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 800
    assert all(torch.equal(out, q) for out, q in results)


def test_a_branch_of_a_graph_has_scratch_of_its_own(kernel: attune.Kernel) -> None:
    a, b = query(1), query(2)
    out_a, out_b = torch.empty_like(a), torch.empty_like(b)
    graph, side = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    with torch.cuda.graph(graph):
        main = torch.cuda.current_stream()
        side.wait_stream(main)
        for _ in range(20):
            kernel(a, a, a, out_a)
        with torch.cuda.stream(side):
            for _ in range(20):
                kernel(b, b, b, out_b)
        main.wait_stream(side)
    for _ in range(20):
        graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(out_a, a)
    assert torch.equal(out_b, b)
