"""Gives the daemon everybody else's times, so that `attune best` and `attune summary` compare with them."""

from __future__ import annotations

import attune

from attune_bench.jsonl import Run
from attune_bench.records import OURS, OURS_16


def record_baselines(client: attune.Client, device: str, run: Run) -> int:
    """Records each right time of another contestant under its name; how many there were."""
    recorded = 0
    for row in run.rows:
        for name, result in row.results.items():
            if name in (OURS, OURS_16) or result.us is None:
                continue
            us = result.timing.us
            note = f"attune-bench {run.header.date[:10]}, PyTorch {run.header.libraries['PyTorch']}"
            if result.note:
                note = f"{note}; {result.note}"
            client.record_baseline(row.problem, name, us.median, us.low, us.high, device=device, note=note)
            recorded += 1
    return recorded
