from __future__ import annotations

import pytest
from attune.problem import Problem

from attune_bench.work import Roof, flops, least_bytes, visible_pairs


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("b1.h1.q4.d64.f16", 16),
        ("b1.h1.q4.d64.f16.causal", 10),
        ("b1.h1.q2.kv4.d64.f16.causal", 3),
        ("b1.h1.q2.kv4.d64.f16.causal-br", 7),
        ("b1.h1.q4.kv2.d64.f16.causal", 7),
        ("b1.h1.q4.kv2.d64.f16.causal-br", 3),
        ("b1.h1.q4.d64.f16.window2", 7),
    ],
)
def test_pairs_are_counted_where_a_row_sees_a_key(text, pairs):
    assert visible_pairs(Problem.parse(text)) == pairs


def test_operations_are_counted_as_flash_attention_counts_them():
    assert flops(Problem.parse("b4.h16.q4096.d128.f16")) == 4 * 4 * 16 * 4096 * 4096 * 128


def test_bytes_are_each_tensor_once_with_shared_heads_counted_once():
    q_and_o, k_and_v = 2 * 32 * 128, 2 * 8 * 1024 * 128
    assert least_bytes(Problem.parse("b1.h32.kvh8.q1.kv1024.d128.f16")) == 2 * (q_and_o + k_and_v)


def test_the_log_sum_exp_is_four_bytes_a_row():
    with_lse, without = Problem.parse("b1.h2.q8.d64.f16.lse"), Problem.parse("b1.h2.q8.d64.f16")
    assert least_bytes(with_lse) - least_bytes(without) == 4 * 2 * 8


def test_the_roof_is_the_longer_of_the_two_times():
    problem = Problem.parse("b1.h1.q1024.d64.f16")
    compute, memory = flops(problem) / 100e12 * 1e6, least_bytes(problem) / 1000e9 * 1e6
    assert Roof(tflops=100, gbs=1000).time_us(problem) == pytest.approx(max(compute, memory))
    assert Roof(tflops=100, gbs=1000).bound(problem) == "compute"
    assert Roof(tflops=1e6, gbs=1000).time_us(problem) == pytest.approx(memory)
    assert Roof(tflops=1e6, gbs=1000).bound(problem) == "memory"
