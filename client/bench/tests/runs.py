"""Made-up runs for tests."""

from __future__ import annotations

import dataclasses

from attune.problem import Problem

from attune_bench.jsonl import Run
from attune_bench.records import Accuracy, Eager, Floors, Header, Result, Row, Served, Status, Timing
from attune_bench.statistics import Interval
from attune_bench.work import Roofline, compulsory_bytes, flops

PREFILL = "b2.h8.q512.d64.f16"
DECODE = "b1.h32.kvh8.q1.kv8192.d128.f16"
ROOF = Roofline(tflops=600.0, gbs=4600.0)


def interval(median):
    return Interval(median * 0.995, median, median * 1.005)


def header(**fields):
    known = {
        "date": "2026-11-20T21:00:00+00:00",
        "command": "attune-bench --tune",
        "device": "NVIDIA H200",
        "sm_count": 132,
        "l2_bytes": 60 << 20,
        "memory_bytes": 139 << 30,
        "driver": "580.159.04",
        "libraries": {"PyTorch": "2.11.0", "CUDA": "13.0", "cuDNN": "91900"},
        "floors": Floors(interval(0.52), interval(ROOF.gbs), interval(ROOF.tflops)),
        "contestants": ("attune", "sdpa", "flash", "cudnn"),
        "problems": (PREFILL, DECODE),
    }
    return Header(**{**known, **fields})


def right(name, us, **fields):
    known = {
        "accuracy": Accuracy(2.4e-4, 4.9e-4, 2),
        "timing": Timing(interval(us), 21, 100),
        "eager": Eager(us + 10, us + 30),
    }
    return Result(name, Status.RIGHT, **{**known, **fields})


def wrong(name, us):
    return dataclasses.replace(right(name, us), status=Status.WRONG, reason="3 of 5 elements are off")


def row(problem, *results, **fields):
    """Of a problem with these results; by default all of the header's contestants are right."""
    parsed = Problem.parse(problem)
    if not results:
        results = (right("attune", 10.0), right("sdpa", 15.0), right("flash", 13.1), right("cudnn", 9.0))
    known = {
        "problem": problem,
        "kind": "decode" if parsed.seq_q < parsed.seq_kv else "prefill",
        "flops": flops(parsed),
        "bytes": compulsory_bytes(parsed),
        "roof_us": ROOF.time_us(parsed),
        "bound": ROOF.bound(parsed),
        "input_sets": 8,
        "results": {result.contestant: result for result in results},
        "served": Served("attention_mma:BLOCK_M=64", "EXACT", 256, 9.9),
        "sm_clock_mhz": 1980,
        "power_w": 300.0,
    }
    return Row(**{**known, **fields})


def run(*rows, **fields):
    """Both problems by default."""
    return Run(header(**fields), list(rows) or [row(PREFILL), row(DECODE)])
