"""What a call costs the host: SDPA, attention with and without options, of packed sequences and of pages, compiled and
computed by torch instead, and the ways to launch, as medians over 1,000 calls.

    python3 host_time.py --server unix:/path

Writes one JSON object; its "bounds" hold some of the medians to others. --problem PROBLEM@FAMILY tunes with that family
alone: what a family with tensor maps costs beside one without. The calls are timed one by one, in interleaved rounds
that end with the GPU idle, so that no call waits for room in a stream. What nobody tuned (options, pages and packed
sequences of the same lengths) runs the service's guess.
"""

from __future__ import annotations

import ctypes
import itertools
import statistics
import time
from collections.abc import Callable
from typing import Any

import partial_report
import torch
import torch.nn.functional as F
from cuda.bindings import driver as api
from partial_report import Report

import attune

ROUNDS = 10
CALLS_A_ROUND = 100
IN_BLOCK = "sdpa in replace_sdpa"
ENTERING = "entering and leaving replace_sdpa"
OPTIONS = ("softcap", "bottom-right window", "sinks", "return_lse", "varlen", "paged")
BY_TORCH = ("with a mask", "in fp32", "with another scale")
PAGE = 16


def routes(kernel: attune.Kernel, stream: int) -> dict[str, Callable[[], Any]]:
    """The recipe's first launch alone, through every interface that Python has to the driver's call. Its parameters
    are those of the launch before."""
    config, function, parameters = kernel._bind(stream).launches[0]
    launch = kernel.answer.recipe.launches[0]
    handle = api.CUstream(stream)
    grid_and_block = (*launch.grid, *launch.block, launch.dynamic_shared_bytes)

    def address(name: bytes) -> int:
        result, found, _ = api.cuGetProcAddress(name, 12000, 0)
        assert not result, name
        return int(found)

    pointer, number = ctypes.c_void_p, ctypes.c_uint
    by_config = ctypes.CFUNCTYPE(ctypes.c_int, pointer, pointer, pointer, pointer)(address(b"cuLaunchKernelEx"))
    by_numbers = ctypes.CFUNCTYPE(ctypes.c_int, pointer, *[number] * 7, pointer, pointer, pointer)(
        address(b"cuLaunchKernel")
    )
    config_args = (pointer(int(config.getPtr())), pointer(int(function)), pointer(parameters), None)
    number_args = (int(function), *grid_and_block, stream, parameters, None)
    return {
        "bindings cuLaunchKernelEx": lambda: api.cuLaunchKernelEx(config, function, parameters, 0),
        "bindings cuLaunchKernel": lambda: api.cuLaunchKernel(function, *grid_and_block, handle, parameters, 0),
        "ctypes cuLaunchKernelEx": lambda: by_config(*config_args),
        "ctypes cuLaunchKernel": lambda: by_numbers(*number_args),
    }


def contenders(kernel: attune.Kernel) -> dict[str, Callable[[], Any]]:
    problem = kernel.answer.problem

    def tensor(heads: int, length: int) -> torch.Tensor:
        return torch.randn((problem.batch, heads, length, problem.head_dim), device="cuda").half()

    q = tensor(problem.heads_q, problem.seq_q)
    k, v = (tensor(problem.heads_kv, problem.seq_kv) for _ in range(2))
    out = torch.empty_like(q)
    stream = torch.cuda.current_stream().cuda_stream
    addresses = (*(tensor.data_ptr() for tensor in (q, k, v, out)), 0, stream)
    kernel.launch(*addresses)
    others = [tensor.clone() for tensor in (q, k, v, out)]
    elsewhere = itertools.cycle([(*(tensor.data_ptr() for tensor in others), 0, stream), addresses])
    return {
        "sdpa": lambda: F.scaled_dot_product_attention(q, k, v),
        "attune.attention": lambda: attune.attention(q, k, v),
        IN_BLOCK: lambda: F.scaled_dot_product_attention(q, k, v),
        "kernel(q, k, v)": lambda: kernel(q, k, v),
        "kernel(q, k, v, out)": lambda: kernel(q, k, v, out),
        "kernel.launch": lambda: kernel.launch(*addresses),
        "kernel.launch, other tensors each time": lambda: kernel.launch(*next(elsewhere)) or others,
        **routes(kernel, stream),
        "torch.empty_like": lambda: torch.empty_like(q),
        "nothing": lambda: None,
        ENTERING: enter_and_leave,
    }


def more_contenders(problem: attune.Problem) -> dict[str, Callable[[], Any]]:
    """Of the same heads and lengths as `problem`. All are called once, and with that compiled."""
    batch, heads, heads_kv, dim = problem.batch, problem.heads_q, problem.heads_kv, problem.head_dim
    seq_q, seq_kv = problem.seq_q, problem.seq_kv

    def tensor(*shape: int) -> torch.Tensor:
        return torch.randn(shape, device="cuda").half()

    q, k, v = tensor(batch, heads, seq_q, dim), *(tensor(batch, heads_kv, seq_kv, dim) for _ in range(2))
    tokens = tensor(batch * seq_q, heads, dim), *(tensor(batch * seq_kv, heads_kv, dim) for _ in range(2))
    bounds = [torch.arange(batch + 1, dtype=torch.int32, device="cuda") * length for length in (seq_q, seq_kv)]
    width = -(-seq_kv // PAGE)
    rows = tensor(batch, seq_q, heads, dim)
    pages = [tensor(batch * width, PAGE, heads_kv, dim) for _ in range(2)]
    table = torch.arange(batch * width, dtype=torch.int32, device="cuda").view(batch, width)
    used = torch.full((batch,), seq_kv, dtype=torch.int32, device="cuda")
    mask = torch.ones((seq_q, seq_kv), dtype=torch.bool, device="cuda")
    sinks = torch.zeros(heads, device="cuda")
    operator = torch.ops.attune.attention.default  # as graphs hold it
    in_fp32 = [each.float() for each in (q, k, v)]
    sdpa, attention = F.scaled_dot_product_attention, attune.attention
    compiled_sdpa = torch.compile(lambda q, k, v: sdpa(q, k, v), fullgraph=True)
    compiled = torch.compile(lambda q, k, v: attention(q, k, v), fullgraph=True)
    calls = {
        "softcap": lambda: attention(q, k, v, softcap=30.0),
        "bottom-right window": lambda: attention(q, k, v, causal="bottom-right", window=64),
        "sinks": lambda: attention(q, k, v, sinks=sinks),
        "return_lse": lambda: attention(q, k, v, return_lse=True),
        "varlen": lambda: attune.attention_varlen(*tokens, *bounds, seq_q, seq_kv),
        "paged": lambda: attune.attention_paged(rows, *pages, table, used),
        "compiled sdpa": lambda: compiled_sdpa(q, k, v),
        "compiled attune.attention": lambda: compiled(q, k, v),
        "operator attune::attention": lambda: operator(q, k, v),
        "sdpa with a mask": lambda: sdpa(q, k, v, mask),
        "attune.attention with a mask": lambda: attention(q, k, v, mask),
        "sdpa in fp32": lambda: sdpa(*in_fp32),
        "attune.attention in fp32": lambda: attention(*in_fp32),
        "sdpa with another scale": lambda: sdpa(q, k, v, scale=0.3),
        "attune.attention with another scale": lambda: attention(q, k, v, scale=0.3),
    }
    for call in calls.values():
        call()
    return calls


def launched(calls: dict[str, Callable[[], Any]]) -> dict[str, bool]:
    """Whether attune's kernel computed each; those that torch may compute are left out."""
    found = {}
    for name in (*OPTIONS, "compiled attune.attention", "operator attune::attention"):
        with attune.replace_sdpa() as replaced:
            calls[name]()
        found[name] = (replaced.stats.launched, replaced.stats.fell_back) == (1, 0)
    return found


def held(times: dict[str, dict[str, float]]) -> dict[str, dict[str, Any]]:
    """Medians, what they are held to, and whether that holds."""
    us = {name: each["median_us"] for name, each in times.items()}
    plain = us["attune.attention"]
    bounds = {
        "attune.attention": us["sdpa"],
        **dict.fromkeys(OPTIONS, 1.2 * plain),
        "compiled attune.attention": 1.2 * plain,
        "operator attune::attention": 1.2 * plain,
        **{f"attune.attention {what}": us[f"sdpa {what}"] + 2.0 for what in BY_TORCH},
        ENTERING: 50.0,
    }
    return {
        name: {"us": us[name], "at most": round(bound, 3), "holds": us[name] <= bound} for name, bound in bounds.items()
    }


def enter_and_leave() -> None:
    with attune.replace_sdpa():
        pass


def timed(call: Callable[[], Any]) -> list[int]:
    """Nanoseconds of each call of one round."""
    clock, times = time.perf_counter_ns, []
    for _ in range(CALLS_A_ROUND):
        start = clock()
        call()
        times.append(clock() - start)
    torch.cuda.synchronize()
    return times


@torch.inference_mode()
def measure(calls: dict[str, Callable[[], Any]]) -> dict[str, dict[str, float]]:
    """Microseconds, by contender."""
    times: dict[str, list[int]] = {name: [] for name in calls}
    for round_ in range(ROUNDS + 1):
        for name, call in calls.items():
            if name == IN_BLOCK:
                with attune.replace_sdpa():
                    found = timed(call)
            else:
                found = timed(call)
            if round_ > 0:  # the first warms up
                times[name] += found
    return {
        name: {
            "median_us": statistics.median(found) / 1000,
            "p10_us": statistics.quantiles(found, n=10)[0] / 1000,
            "p90_us": statistics.quantiles(found, n=10)[8] / 1000,
        }
        for name, found in times.items()
    }


def main() -> None:
    parser = partial_report.arguments(__doc__, limit=120.0)
    parser.add_argument("--problem", action="append", help="or PROBLEM@FAMILY; two by default")
    parser.add_argument("--trials", type=int, default=60, help="to tune each problem with; 0 leaves it as it is")
    arguments = parser.parse_args()
    report = Report(arguments)
    report.add("calls", ROUNDS * CALLS_A_ROUND)
    problems: dict[str, Any] = {}
    with attune.Client(arguments.server) as client:
        attune.configure(
            client, device=arguments.device, acceptable=partial_report.ANY_ANSWER, wait=60.0, never_slower=False
        )
        for given in arguments.problem or ("b1.h1.q128.d64.f16", "b1.h8.q1.kv4096.d64.f16"):
            if report.left() <= 0:
                break
            problem, _, family = given.partition("@")
            if arguments.trials > 0:
                client.tune(
                    problem,
                    device=arguments.device,
                    families=[family] if family else [],
                    strategy="random",
                    max_trials=arguments.trials,
                    seed=1,
                ).result()
            answer = client.best(problem, device=arguments.device, artifact=True)
            with torch.inference_mode():
                more = more_contenders(answer.problem)
            times = measure({**contenders(attune.load(answer)), **more})
            problems[given] = {
                "variant": answer.variant.text,
                "launches": len(answer.recipe.launches),
                "scratch_bytes": sum(buffer.bytes for buffer in answer.recipe.scratch),
                "launched": launched(more),
                "bounds": held(times),
                "host_time": times,
            }
            report.add("problems", problems)
    report.end()


if __name__ == "__main__":
    main()
