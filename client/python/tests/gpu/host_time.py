"""What a call costs the host: SDPA, attention, and the ways to launch, as medians over 1,000 calls.

    python3 host_time.py --server unix:/path

Prints one JSON object. --problem PROBLEM@FAMILY tunes with that family alone: what a family with tensor maps costs
beside one without. The calls are timed one by one, in interleaved rounds that end with the GPU idle, so that no
call waits for room in a stream.
"""

from __future__ import annotations

import argparse
import ctypes
import itertools
import json
import platform
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from cuda.bindings import driver as api

import attune

ROUNDS = 10
CALLS_A_ROUND = 100
IN_BLOCK = "sdpa in replace_sdpa"


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
        "entering and leaving replace_sdpa": enter_and_leave,
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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server")
    parser.add_argument("--problem", action="append", help="or PROBLEM@FAMILY; two by default")
    parser.add_argument("--trials", type=int, default=60, help="to tune each problem with; 0 leaves it as it is")
    arguments = parser.parse_args()
    report: dict[str, Any] = {
        "device": torch.cuda.get_device_name(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "calls": ROUNDS * CALLS_A_ROUND,
        "problems": {},
    }
    with attune.Client(arguments.server) as client:
        attune.configure(client, device="cuda:0", wait=60.0, never_slower=False)
        for given in arguments.problem or ("b1.h1.q128.d64.f16", "b1.h8.q1.kv4096.d64.f16"):
            problem, _, family = given.partition("@")
            if arguments.trials > 0:
                client.tune(
                    problem,
                    device="cuda:0",
                    families=[family] if family else [],
                    strategy="random",
                    max_trials=arguments.trials,
                    seed=1,
                ).result()
            answer = client.best(problem, device="cuda:0", artifact=True)
            report["problems"][given] = {
                "variant": answer.variant.text,
                "launches": len(answer.recipe.launches),
                "scratch_bytes": sum(buffer.bytes for buffer in answer.recipe.scratch),
                "host_time": measure(contenders(attune.load(answer))),
            }
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
