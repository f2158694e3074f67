"""What a problem needs at least: operations and bytes, and the time that a device's two roofs leave for them."""

from __future__ import annotations

from dataclasses import dataclass

from attune.problem import Problem

ELEMENT_BYTES = 2  # f16 and bf16


def visible_pairs(problem: Problem) -> int:
    """Pairs of a query row and a key it sees, in one head."""
    if problem.mask == "none":
        return problem.seq_q * problem.seq_kv
    offset = 0 if problem.mask == "causal" else problem.seq_kv - problem.seq_q
    pairs = 0
    for row in range(problem.seq_q):
        end = min(row + offset + 1, problem.seq_kv)
        first = max(0, row + offset - problem.window + 1) if problem.mask == "window" else 0
        pairs += max(0, end - first)
    return pairs


def flops(problem: Problem) -> int:
    """Operations of the two products, as FlashAttention counts them: 4 a visible pair and head dimension."""
    return 4 * problem.batch * problem.heads_q * problem.head_dim * visible_pairs(problem)


def least_bytes(problem: Problem) -> int:
    """Q, K, V read once and O (with `.lse` the log-sum-exp too) written once."""
    rows_q = problem.batch * problem.heads_q * problem.seq_q
    rows_kv = problem.batch * problem.heads_kv * problem.seq_kv
    return 2 * (rows_q + rows_kv) * problem.head_dim * ELEMENT_BYTES + (4 * rows_q if problem.lse else 0)


@dataclass(frozen=True, slots=True)
class Roof:
    """What the device was measured to reach: 10^12 operations/s of `mma.sync`, 10^9 bytes/s of reading."""

    tflops: float
    gbs: float

    def time_us(self, problem: Problem) -> float:
        """The larger of the two times that no kernel within these roofs can beat."""
        return max(flops(problem) / self.tflops / 1e6, least_bytes(problem) / self.gbs / 1e3)

    def bound(self, problem: Problem) -> str:
        """Which roof is the lower one: "compute" or "memory"."""
        compute_bound = flops(problem) / self.tflops / 1e6 >= least_bytes(problem) / self.gbs / 1e3
        return "compute" if compute_bound else "memory"
