"""How the best so far falls, a panel for each problem, as an SVG; needs matplotlib."""

import statistics

from league_report import GUIDED, HORIZON, grouped

# Okabe and Ito's colours, which colour-blind readers can tell apart.
OURS = {GUIDED: "#000000", "evolution": "#D55E00", "random": "#999999"}
OTHERS = ["#0072B2", "#009E73", "#CC79A7", "#E69F00"]
COLUMNS = 3


def median_curve(runs, space, trials):
    """Of each trial from 1: the median over the runs of best so far / optimum."""
    curve = []
    for trial in range(1, trials + 1):
        best = [
            min([us for at, us in run["improvements"] if at <= trial], default=space.worst_us) / space.best_us
            for run in runs
        ]
        curve.append(statistics.median(best))
    return curve


def drawn(table):
    """{strategy: colour}: ours, and of the others those of the least mean rank by the criterion."""
    places = {}
    problem, place = None, 0
    for row in table:
        place = place + 1 if row["problem"] == problem else 0
        problem = row["problem"]
        places.setdefault(row["strategy"], []).append(place)
    ranked = sorted((name for name in places if name not in OURS), key=lambda name: statistics.fmean(places[name]))
    return OURS | dict(zip(ranked, OTHERS, strict=False))


def plot(runs, spaces, table, path):
    """Writes the picture; False without matplotlib."""
    try:
        import matplotlib
    except ImportError:
        return False
    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "attune"  # the same runs give the same file
    from matplotlib import pyplot

    groups = grouped(runs)
    short = next(budget for budget in sorted({run["budget"] for run in runs}) if budget >= HORIZON)
    shown = [space for space in spaces if any(row["problem"] == space.problem for row in table)]
    lines = -(-len(shown) // COLUMNS)
    figure, axes = pyplot.subplots(lines, COLUMNS, figsize=(4.2 * COLUMNS, 3 * lines), squeeze=False)
    for axis in axes.flat[len(shown) :]:
        axis.set_visible(False)
    for axis, space in zip(axes.flat, shown, strict=False):
        trials = space.trials(HORIZON)
        for strategy, colour in reversed(drawn(table).items()):
            curve = median_curve(groups.get((space.problem, strategy, short), []), space, trials)
            percent = [100 * (value - 1) for value in curve]
            width = 2 if strategy == GUIDED else 1.2
            axis.plot(
                range(1, trials + 1), percent, color=colour, label=strategy, linewidth=width, drawstyle="steps-post"
            )
        axis.set_title(f"{space.problem}, {space.variants} variants", fontsize=8)
        axis.set_yscale("symlog", linthresh=1)
        axis.set_ylim(bottom=0)
        axis.tick_params(labelsize=7)
    axes[0, 0].set_ylabel("above the optimum, %")
    axes[-1, 0].set_xlabel("trials")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles[::-1], labels[::-1], loc="lower center", ncols=len(labels), fontsize=8, frameon=False)
    figure.tight_layout(rect=(0, 0.05, 1, 1))
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
    return True
