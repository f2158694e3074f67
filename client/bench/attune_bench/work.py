"""What a problem needs at least: operations and bytes, and the time that a device's roofline leaves for them.

The daemon's rule (proto/attune/problem.h), held to it by tests/golden/work.json.
"""

from __future__ import annotations

from dataclasses import dataclass

from attune.problem import Problem

ELEMENT_BYTES = 2  # f16 and bf16; of 8-bit K and V 1


def sequence_lengths(problem: Problem) -> tuple[list[int], list[int]]:
    """Queries and keys of each sequence that a problem is tuned on: all the same, or, where sequences have their own,
    falling evenly from the longest to a batch-th of it."""
    q, kv = (_falling(longest, problem.batch) for longest in (problem.seq_q, problem.seq_kv))
    equal_q, equal_kv = [problem.seq_q] * problem.batch, [problem.seq_kv] * problem.batch
    return q if problem.varlen else equal_q, kv if problem.has_own_lengths else equal_kv


def _falling(longest: int, batch: int) -> list[int]:
    return [-(-longest * left // batch) for left in range(batch, 0, -1)]


def visible_pairs(problem: Problem) -> int:
    """Pairs of a query row and a key it sees, in one head of every sequence."""
    return sum(_pairs(problem, *lengths) for lengths in zip(*sequence_lengths(problem), strict=True))


def _pairs(problem: Problem, q_length: int, kv_length: int) -> int:
    if problem.mask == "none":
        return q_length * kv_length
    end = 1 if problem.mask == "causal" else kv_length - q_length + 1  # of row 0's keys
    pairs = _clamped_sum(end, q_length, kv_length)
    return pairs - _clamped_sum(end - problem.window, q_length, kv_length) if problem.mask == "window" else pairs


def _clamped_sum(first: int, rows: int, most: int) -> int:
    """The sum of clamp(first + i, 0, most) over `rows` numbers i from 0 on."""
    end = first + rows
    begin = min(max(first, 0), most)  # the terms begin .. stop - 1 are themselves
    stop = min(max(end, begin), most)
    return (stop - begin) * (begin + stop - 1) // 2 + max(0, end - max(first, most)) * most


def flops(problem: Problem) -> int:
    """Operations of the two products, as FlashAttention counts them: 4 a visible pair and head dimension."""
    return 4 * problem.heads_q * problem.head_dim * visible_pairs(problem)


def compulsory_bytes(problem: Problem) -> int:
    """Compulsory traffic: Q, K, V and their scales read once, O (with `.lse` the log-sum-exp too) written once."""
    q, kv = sequence_lengths(problem)
    rows_q, rows_kv = problem.heads_q * sum(q), problem.heads_kv * sum(kv)
    elements = rows_q * ELEMENT_BYTES + rows_kv * (1 if problem.kv_dtype else ELEMENT_BYTES)
    scales = 2 * 4 * problem.batch * problem.heads_kv if problem.kv_dtype else 0
    return 2 * elements * problem.head_dim + scales + (4 * rows_q if problem.lse else 0)


@dataclass(frozen=True, slots=True)
class Roofline:
    """What the device was measured to reach: 10^12 operations/s of `mma.sync`, 10^9 bytes/s of reading."""

    tflops: float
    gbs: float

    def time_us(self, problem: Problem) -> float:
        """The larger of the two times that no kernel under this roofline can beat."""
        return max(flops(problem) / self.tflops / 1e6, compulsory_bytes(problem) / self.gbs / 1e3)

    def bound(self, problem: Problem) -> str:
        """Which of the two bounds a kernel: "compute" or "memory"."""
        compute_bound = flops(problem) / self.tflops / 1e6 >= compulsory_bytes(problem) / self.gbs / 1e3
        return "compute" if compute_bound else "memory"
