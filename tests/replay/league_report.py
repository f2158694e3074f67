"""What runs of a league show: how near the optimum strategies are after how many trials, and which is better.

A run is {"problem", "strategy", "budget", "seed", "trials", "improvements": [[trial, us], ...]}; a space has the least
and the greatest recorded time and the number of its variants.

The criterion, the same for every league: a run's loss is the mean of ln(best so far / optimum) over the first tenth of
the space; before the first variant with a time the best so far is the slowest of the space. guided BEATS a strategy on
a problem where the 95 % bootstrap interval of the difference of their mean losses is above 0, LOSES where it is below,
and else there is NO DIFFERENCE.
"""

import collections
import dataclasses
import math
import random
import statistics

HORIZON = 0.1  # share of a space that the criterion looks at
SMALL = 0.05  # share of a space in which a short search ends
NEAR = 0.02  # of the optimum
WITHIN = (0.01, 0.02, 0.05)
RESAMPLES = 2000
GUIDED = "guided"


@dataclasses.dataclass(frozen=True)
class Space:
    problem: str
    variants: int
    best_us: float
    worst_us: float

    def trials(self, share):
        return max(1, math.ceil(share * self.variants))


def loss(run, space):
    """The criterion's number of one run."""
    most = space.trials(HORIZON)
    total, best, at = 0.0, space.worst_us, 1
    for trial, us in [*run["improvements"], [most + 1, space.best_us]]:
        end = min(trial, most + 1)
        total += (end - at) * math.log(best / space.best_us)
        best, at = us, end
    return total / most


def trials_to(run, space, share):
    """Trials until one within `share` of the optimum; None where the run's budget was not enough."""
    for trial, us in run["improvements"]:
        if us <= space.best_us * (1 + share):
            return trial
    return None


def quantile(values, share):
    """The smallest that is not exceeded by `share` of them; None sorts last."""
    ordered = sorted(values, key=lambda value: math.inf if value is None else value)
    return ordered[max(1, math.ceil(share * len(ordered))) - 1]


def near_early(runs, space):
    """The share of runs that are near the optimum after a small share of the space."""
    few = space.trials(SMALL)
    near = [trials_to(run, space, NEAR) for run in runs]
    return sum(trial is not None and trial <= few for trial in near) / len(runs)


def difference(ours, theirs, seed=1):
    """(low, high): the 95 % bootstrap interval of mean(theirs) - mean(ours)."""
    draw = random.Random(seed)
    means = sorted(
        statistics.fmean(draw.choices(theirs, k=len(theirs))) - statistics.fmean(draw.choices(ours, k=len(ours)))
        for _ in range(RESAMPLES)
    )
    return means[round(0.025 * RESAMPLES)], means[round(0.975 * RESAMPLES) - 1]


def verdict(ours, theirs):
    """Of guided's losses and another's."""
    low, high = difference(ours, theirs)
    if low > 0:
        return "BEATS"
    return "LOSES" if high < 0 else "NO DIFFERENCE"


def grouped(runs):
    """{(problem, strategy, budget): runs}"""
    groups = collections.defaultdict(list)
    for run in runs:
        groups[run["problem"], run["strategy"], run["budget"]].append(run)
    return groups


def row_of(problem_runs, long_runs, guided_losses, space, strategy):
    """One strategy on one problem: `problem_runs` within the budget that the criterion needs, `long_runs` within the
    greatest."""
    losses = [loss(run, space) for run in problem_runs]
    within = [[trials_to(run, space, share) for run in long_runs] for share in WITHIN]
    return {
        "problem": space.problem,
        "variants": space.variants,
        "strategy": strategy,
        "loss": statistics.fmean(losses),
        "trials": [(quantile(each, 0.5), quantile(each, 0.95)) for each in within],
        "near_early": near_early(problem_runs, space),
        "guided": "" if strategy == GUIDED else verdict(guided_losses, losses),
    }


def rows(runs, spaces):
    """Every strategy on every problem, in the order of their losses. The criterion's number is of the least budget that
    has its horizon; trials to some nearness are of the greatest."""
    groups = grouped(runs)
    budgets = sorted({run["budget"] for run in runs})
    short = next(budget for budget in budgets if budget >= HORIZON)
    table = []
    for space in spaces:
        names = [name for problem, name, budget in groups if problem == space.problem and budget == short]
        if GUIDED not in names:
            continue
        ours = [loss(run, space) for run in groups[space.problem, GUIDED, short]]
        of_space = []
        for name in names:
            long = groups.get((space.problem, name, budgets[-1])) or groups[space.problem, name, short]
            of_space.append(row_of(groups[space.problem, name, short], long, ours, space, name))
        table += sorted(of_space, key=lambda row: row["loss"])
    return table


def tally(table, problems):
    """{strategy: Counter of guided's verdicts} over these problems."""
    counts = collections.defaultdict(collections.Counter)
    for row in table:
        if row["problem"] in problems and row["guided"]:
            counts[row["strategy"]][row["guided"]] += 1
    return counts


def _percent(share):
    return f"{100 * share:.3g} %"


def _trials(pair):
    return " / ".join("-" if value is None else str(value) for value in pair)


def tally_lines(table, title, problems):
    """A table of guided against each strategy; the ones that it beats least come first."""
    mine = [row["loss"] for row in table if row["problem"] in problems and row["strategy"] == GUIDED]
    if not mine:
        return []
    lines = [f"### {title}: {len(mine)} problems", ""]
    lines += [
        "| strategy | guided beats it | no difference | guided loses | its loss / guided's |",
        "|---|---|---|---|---|",
    ]
    counts = tally(table, problems)
    ours = {row["problem"]: row["loss"] for row in table if row["strategy"] == GUIDED}

    def ratio(strategy):
        logs = [
            math.log(row["loss"] / ours[row["problem"]])
            for row in table
            if row["strategy"] == strategy and row["problem"] in problems and row["loss"] > 0 < ours[row["problem"]]
        ]
        return math.exp(statistics.fmean(logs)) if logs else math.inf

    for strategy in sorted(counts, key=ratio):
        count = counts[strategy]
        cells = (count["BEATS"], count["NO DIFFERENCE"], count["LOSES"], f"{ratio(strategy):.2f}")
        lines.append("| " + " | ".join([strategy, *map(str, cells)]) + " |")
    return [*lines, ""]


def unable_lines(unable):
    """A line for each strategy that fails somewhere."""
    lines = []
    for strategy in sorted({each["strategy"] for each in unable}):
        own = [each for each in unable if each["strategy"] == strategy]
        where = ", ".join(f"{each['problem']} ({100 * each['budget']:g} %)" for each in own)
        lines.append(f"- `{strategy}` is left out of {where}: {own[0]['why']}")
    return lines


def report(table, chosen, unable, picture=None):
    """The league as Markdown. `chosen`: problems on which guided's settings were chosen; `unable`: what failed, as
    [{"problem", "strategy", "budget", "why"}]."""
    problems = list(dict.fromkeys(row["problem"] for row in table))
    seen = [problem for problem in problems if problem in chosen]
    unseen = [problem for problem in problems if problem not in chosen]
    lines = ["## Guided against each", ""]
    lines += tally_lines(table, "Its settings were not chosen on these", unseen)
    lines += tally_lines(table, "Its settings were chosen on these", seen)
    lines += unable_lines(unable)
    if picture:
        lines += ["", f"![Median of the best so far]({picture})"]
    lines += ["", "## Each problem", ""]
    lines += ["| problem | variants | strategy | loss | to 1 % | to 2 % | to 5 % | to 2 % in 5 % | guided |"]
    lines += ["|---|---|---|---|---|---|---|---|---|"]
    for row in table:
        cells = [row["problem"], row["variants"], row["strategy"], f"{row['loss']:.4f}"]
        cells += [_trials(pair) for pair in row["trials"]] + [_percent(row["near_early"]), row["guided"]]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines) + "\n"
