"""Times of the same contestants measured before on the same kind of device, kept in the repository."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from attune_bench.error import BenchError
from attune_bench.jsonl import Run
from attune_bench.markdown import figure, table

AGREES_WITHIN = 0.03


@dataclass(frozen=True, slots=True)
class ReferenceTime:
    """One contestant's GPU time for a problem, in microseconds."""

    problem: str
    contestant: str
    us: float


def read_reference(path: Path) -> list[ReferenceTime]:
    """From a CSV file with the columns problem, contestant and us; none when there is no such file.

    Raises BenchError naming the file and the line.
    """
    if not path.exists():
        return []
    times = []
    with path.open(newline="") as file:
        for number, line in enumerate(csv.DictReader(file), start=2):
            try:
                times.append(ReferenceTime(line["problem"], line["contestant"], float(line["us"])))
            except (KeyError, TypeError, ValueError) as error:
                raise BenchError(f"{path}:{number}: expected are problem, contestant and us, not {line}") from error
    return times


def reference_table(run: Run, reference: Sequence[ReferenceTime]) -> list[str]:
    """Each reference time beside this run's, and which differ by more than 3 %."""
    rows_by_problem = {row.problem: row for row in run.rows}
    lines, differing = [], 0
    for time in reference:
        row = rows_by_problem.get(time.problem)
        us = row.us(time.contestant) if row else None
        change = us and us / time.us - 1
        verdict = "not in this run" if change is None else "agrees" if abs(change) <= AGREES_WITHIN else "DIFFERS"
        differing += verdict == "DIFFERS"
        percent = "" if change is None else f"{100 * change:+.1f} %"
        lines.append((time.problem, time.contestant, figure(time.us, 4), figure(us, 4), percent, verdict))
    words = f"{differing} of {len(lines)} differ by more than {100 * AGREES_WITHIN:.0f} %."
    columns = ("problem", "contestant", "before us", "now us", "change", "")
    return ["## Beside earlier figures", "", words, "", *table(columns, lines, left=2)]
