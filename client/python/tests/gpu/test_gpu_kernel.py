"""attune.load on a GPU: every kind of problem, stream, graph and array."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from gpu_problems import PROBLEMS

import attune

torch = pytest.importorskip("torch")

PROBLEM = "b2.h8.kvh2.q256.d64.f16.causal"
SPLIT = "b1.h8.q1.kv4096.d64.f16"  # few CTAs without splits: tuning it always finds a variant with scratch

Make = Callable[..., tuple[Any, Any, Any]]


@pytest.mark.parametrize("problem", PROBLEMS)
def test_results_agree_with_fp32(answer: Callable, tensors: Make, check: Callable, problem: str) -> None:
    kernel = attune.load(answer(problem))
    q, k, v = tensors(problem)
    made = kernel(q, k, v)
    out, lse = made if problem.endswith("lse") else (made, None)
    assert out.stride() == q.stride()
    check(problem, q, k, v, out, lse)


def test_the_result_is_written_where_the_caller_wants_it(answer: Callable, tensors: Make, check: Callable) -> None:
    q, k, v = tensors(PROBLEM)
    out = torch.full_like(q, float("nan"))
    assert attune.load(answer(PROBLEM))(q, k, v, out) is out
    check(PROBLEM, q, k, v, out)


@pytest.mark.parametrize("problem", [PROBLEM, SPLIT])
def test_a_graph_replays_on_new_data_while_the_stream_goes_on(
    answer: Callable, tensors: Make, check: Callable, problem: str
) -> None:
    kernel = attune.load(answer(problem))
    q, k, v = tensors(problem)
    out = torch.empty_like(q)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kernel(q, k, v, out)
    for seed in (1, 2, 3):
        for into, new in zip((q, k, v), tensors(problem, seed), strict=True):
            into.copy_(new)
        graph.replay()
        eager = kernel(q, k, v)
        check(problem, q, k, v, out)
        assert torch.equal(eager, out)


def test_a_kernel_may_first_be_loaded_inside_a_capture(answer: Callable, tensors: Make, check: Callable) -> None:
    problem = "b1.h4.q113.kv203.d128.f16.causal"
    found, (q, k, v) = answer(problem), tensors(problem)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = attune.load(found)(q, k, v)
    graph.replay()
    check(problem, q, k, v, out)


def test_graphs_with_scratch_may_run_at_the_same_time(answer: Callable, tensors: Make, check: Callable) -> None:
    found = answer(SPLIT)
    assert any(buffer.bytes for buffer in found.recipe.scratch)
    kernel = attune.load(found)
    inputs = [tensors(SPLIT, seed) for seed in range(4)]
    outs = [torch.empty_like(q) for q, _, _ in inputs]
    graphs = [torch.cuda.CUDAGraph() for _ in inputs]
    for graph, (q, k, v), out in zip(graphs, inputs, outs, strict=True):
        with torch.cuda.graph(graph):
            for _ in range(20):
                kernel(q, k, v, out)
    streams = [torch.cuda.Stream() for _ in inputs]
    for _ in range(5):
        for graph, stream in zip(graphs, streams, strict=True):
            with torch.cuda.stream(stream):
                graph.replay()
    torch.cuda.synchronize()
    for (q, k, v), out in zip(inputs, outs, strict=True):
        check(SPLIT, q, k, v, out)


def test_the_scratch_of_a_graph_that_is_gone_serves_the_next(answer: Callable, tensors: Make) -> None:
    kernel = attune.load(answer(SPLIT))
    q, k, v = tensors(SPLIT)
    out = kernel(q, k, v)

    def capture() -> None:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            kernel(q, k, v, out)
        graph.replay()
        torch.cuda.synchronize()
        del graph

    for _ in range(4):  # the driver may be a while about telling
        capture()
    before = len(kernel._home.scratch._of_graphs)
    for _ in range(20):
        capture()
    assert len(kernel._home.scratch._of_graphs) < before + 20


def test_streams_and_threads_do_not_disturb_each_other(answer: Callable, tensors: Make, check: Callable) -> None:
    kernels = [attune.load(answer(SPLIT)), attune.load(answer(PROBLEM))]
    failures: list[BaseException] = []
    together = threading.Barrier(8)

    def work(number: int) -> None:
        try:
            problem, kernel = ((SPLIT, kernels[0]), (PROBLEM, kernels[1]))[number % 2]
            # Half of the threads share torch's default stream.
            stream = torch.cuda.Stream() if number < 4 else torch.cuda.default_stream()
            q, k, v = tensors(problem, number)
            torch.cuda.synchronize()
            together.wait()
            with torch.cuda.stream(stream):
                outs = [kernel(q, k, v) for _ in range(50)]
            stream.synchronize()
            check(problem, q, k, v, outs[0])
            assert all(torch.equal(out, outs[0]) for out in outs)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


@pytest.mark.parametrize("wrap", ["cuda_stream", "handle", "protocol"])
def test_a_stream_may_be_given(answer: Callable, tensors: Make, check: Callable, wrap: str) -> None:
    class Protocol:
        def __cuda_stream__(self) -> tuple[int, int]:
            return 0, stream.cuda_stream

    stream = torch.cuda.Stream()
    q, k, v = tensors(PROBLEM)
    torch.cuda.synchronize()
    given = {"cuda_stream": stream, "handle": stream.cuda_stream, "protocol": Protocol()}[wrap]
    out = attune.load(answer(PROBLEM))(q, k, v, stream=given)
    stream.synchronize()
    check(PROBLEM, q, k, v, out)


def test_cupy_arrays_are_read_and_written_in_place(answer: Callable, tensors: Make, check: Callable) -> None:
    cupy = pytest.importorskip("cupy")
    q, k, v = tensors(PROBLEM)
    out = torch.zeros_like(q)
    arrays = [cupy.asarray(tensor) for tensor in (q, k, v, out)]
    assert [array.data.ptr for array in arrays] == [tensor.data_ptr() for tensor in (q, k, v, out)]
    with cupy.cuda.Stream(non_blocking=True) as stream:
        torch.cuda.synchronize()
        attune.load(answer(PROBLEM))(*arrays, stream=stream)
        stream.synchronize()
    check(PROBLEM, q, k, v, out)


def test_dlpack_arrays_are_read_and_written_in_place(answer: Callable, tensors: Make, check: Callable) -> None:
    class Exporter:
        """Nothing but DLPack."""

        def __init__(self, tensor: Any) -> None:
            self.__dlpack__, self.__dlpack_device__ = tensor.__dlpack__, tensor.__dlpack_device__

    problem = "b2.h4.q200.kv328.d64.bf16.causal-br.lse"
    q, k, v = tensors(problem)
    out, lse = torch.zeros_like(q), torch.zeros(q.shape[:3], device="cuda")
    attune.load(answer(problem))(*map(Exporter, (q, k, v, out, lse)))
    torch.cuda.synchronize()
    check(problem, q, k, v, out, lse)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda q, k, v: (q.float(), k, v), "q has dtype f32; the problem's is f16"),
        (lambda q, k, v: (q, k[:, :1], v), r"k has shape \(2, 1, 256, 64\)"),
        (lambda q, k, v: (q, k, v.cpu()), "v is on cpu; it must be on a CUDA device"),
        (lambda q, k, v: (q.transpose(2, 3).contiguous().transpose(2, 3), k, v), "q has (strides|[0-9]+ elements)"),
    ],
)
def test_errors_name_argument_value_and_what_is_allowed(
    answer: Callable, tensors: Make, change: Callable, message: str
) -> None:
    with pytest.raises(attune.InvalidArgument, match=message):
        attune.load(answer(PROBLEM))(*change(*tensors(PROBLEM)))
