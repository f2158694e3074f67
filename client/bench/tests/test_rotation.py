from __future__ import annotations

from attune_bench.rotation import set_count

L2, MEMORY = 60 << 20, 139 << 30


def test_inputs_that_overflow_the_l2_twice_need_no_copies():
    assert set_count(2 * L2 + 1, L2, MEMORY) == 1


def test_smaller_inputs_are_copied_until_they_do():
    assert set_count(L2, L2, MEMORY) == 3
    assert 3 * L2 > 2 * L2


def test_tiny_inputs_are_copied_eight_times_as_the_daemon_does():
    assert set_count(48 << 10, L2, MEMORY) == 8


def test_copies_take_at_most_a_quarter_of_the_memory():
    assert set_count(10 << 20, L2, memory_bytes=100 << 20) == 2
    assert set_count(90 << 20, L2, memory_bytes=100 << 20) == 1
