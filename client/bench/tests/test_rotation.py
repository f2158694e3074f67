from __future__ import annotations

import pytest
from attune.problem import Problem
from golden import golden

from attune_bench.rotation import set_count
from attune_bench.work import compulsory_bytes

L2, MEMORY = 60 << 20, 139 << 30


def test_inputs_that_overflow_the_l2_twice_need_no_copies():
    assert set_count(2 * L2 + 1, L2, MEMORY) == 1


def test_smaller_inputs_are_copied_until_they_do():
    assert set_count(L2, L2, MEMORY) == 3
    assert 3 * L2 > 2 * L2


def test_tiny_inputs_are_copied_eight_times_as_the_daemon_does():
    assert set_count(48 << 10, L2, MEMORY) == 8


def test_copies_end_with_the_one_that_exceeds_a_quarter_of_the_memory():
    assert set_count(10 << 20, L2, memory_bytes=100 << 20) == 3
    assert set_count(90 << 20, L2, memory_bytes=100 << 20) == 1


@pytest.mark.parametrize("case", golden("rotation"))
def test_the_daemon_rotates_as_many(case):
    set_bytes = compulsory_bytes(Problem.parse(case["problem"]))
    assert set_bytes == case["set_bytes"]
    assert set_count(set_bytes, case["l2_bytes"], case["memory_bytes"]) == case["sets"]
