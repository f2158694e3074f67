from __future__ import annotations

import pytest
from attune.problem import Problem
from golden import golden

from attune_bench.work import Roofline, compulsory_bytes, flops, sequence_lengths


@pytest.mark.parametrize("case", golden("work"), ids=lambda case: case["problem"])
def test_the_daemon_counts_the_same(case):
    problem = Problem.parse(case["problem"])
    assert sequence_lengths(problem) == (case["q"], case["kv"])
    assert (flops(problem), compulsory_bytes(problem)) == (case["flops"], case["bytes"])


def test_the_largest_problem_is_counted_at_once():
    assert flops(Problem.parse("b60000.h1.q16000000.d1.f16.causal")) > 0


def test_the_roof_is_the_longer_of_the_two_times():
    problem = Problem.parse("b1.h1.q1024.d64.f16")
    compute, memory = flops(problem) / 100e12 * 1e6, compulsory_bytes(problem) / 1000e9 * 1e6
    assert Roofline(tflops=100, gbs=1000).time_us(problem) == pytest.approx(max(compute, memory))
    assert Roofline(tflops=100, gbs=1000).bound(problem) == "compute"
    assert Roofline(tflops=1e6, gbs=1000).time_us(problem) == pytest.approx(memory)
    assert Roofline(tflops=1e6, gbs=1000).bound(problem) == "memory"
