"""Whether two runs agree: the geometric mean of each contestant's change over the problems of both."""

from __future__ import annotations

from dataclasses import dataclass

from attune_bench.jsonl import Run
from attune_bench.markdown import table
from attune_bench.statistics import geometric_mean

AGREES_WITHIN = 0.02


@dataclass(frozen=True, slots=True)
class Change:
    """One contestant from one run to the next."""

    contestant: str
    problems: int  # that both runs timed
    mean: float | None  # geometric mean of the later time over the earlier; None without a problem
    missing: tuple[str, ...]  # timed in one run only

    @property
    def agrees(self) -> bool:
        """Timed on the same problems, and the same on average within 2 %."""
        return not self.missing and (self.mean is None or abs(self.mean - 1) <= AGREES_WITHIN)


def compare(first: Run, second: Run) -> list[Change]:
    """Every contestant of either run, in the first run's order."""
    names = dict.fromkeys((*first.header.contestants, *second.header.contestants))
    rows = {row.problem: row for row in first.rows}, {row.problem: row for row in second.rows}
    changes = []
    for name in names:
        before, after = ({problem: us for problem, row in some.items() if (us := row.us(name))} for some in rows)
        both = [problem for problem in before if problem in after]
        mean = geometric_mean(after[problem] / before[problem] for problem in both)
        changes.append(Change(name, len(both), mean, tuple(sorted(before.keys() ^ after.keys()))))
    return changes


def comparison_text(changes: list[Change]) -> str:
    """A table, and in a last line the verdict."""
    rows = [
        (
            change.contestant,
            str(change.problems),
            "" if change.mean is None else f"{100 * (change.mean - 1):+.2f} %",
            ("agrees" if change.agrees else "DIFFERS")
            + (f"; in one run only: {', '.join(change.missing)}" if change.missing else ""),
        )
        for change in changes
    ]
    agree = all(change.agrees for change in changes)
    verdict = f"The runs {'agree' if agree else 'DO NOT agree'} within {100 * AGREES_WITHIN:.0f} %."
    return "\n".join([*table(("contestant", "problems", "mean change", "verdict"), rows), "", verdict])
