#!/usr/bin/env python3
"""attune's strategies and Kernel Tuner's on the same recordings:
python3 tests/replay/kernel_tuner_league.py --out OUT RECORDING ...

Without a GPU; needs attune-replay, kernel_tuner 1.5 (1.5.0 is what the strategies' names are of) and, for the picture,
matplotlib. Every strategy starts cold, is told the same feasible variants, and pays a trial for each variant that it
asks for the first time, be it one that fails. Each has its defaults, a run for each seed and budget.

Writes OUT/report.md, OUT/curves.svg, and what they are made of: OUT/caches and OUT/t4 (validated against Kernel
Tuner's copy of the T4 schema), OUT/ours.csv, OUT/kernel_tuner.jsonl, OUT/unable.json. Runs that are in
kernel_tuner.jsonl already are not run again: a second call after a change of attune's strategies is quick. Several
devices may share OUT, but a call takes one recording of a problem.
"""

import argparse
import collections
import csv
import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import kernel_tuner_runs
import league_plot
import league_report

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
OURS = ["random", "evolution", "guided"]
CHOSEN = HERE / "chosen_on.txt"


def named(path):
    """The names in a file, one a line; what follows # is a comment."""
    lines = [line.split("#")[0].strip() for line in path.read_text().splitlines()]
    return [line for line in lines if line]


def space_of(path):
    """league_report.Space of a cache file."""
    cache = json.loads(path.read_text())
    times = [entry["time"] * 1000 for entry in cache["cache"].values() if "__error__" not in entry]
    return league_report.Space(cache["problem"], len(cache["cache"]), min(times), max(times))


def our_runs(lines, spaces, budgets, seeds):
    """Runs of `attune-replay league --curves`, those of each budget cut from the longest: our strategies are told no
    limit."""
    improvements = {}
    for line in csv.DictReader(lines):
        key = line["space"], line["strategy"], int(line["seed"])
        improvements.setdefault(key, []).append([int(line["trial"]), float(line["best_us"])])
    runs = []
    for space in spaces:
        for strategy in OURS:
            for budget in budgets:
                most = space.trials(budget)
                for seed in range(1, seeds + 1):
                    found = improvements.get((space.problem, strategy, seed), [])
                    within = [each for each in found if each[0] <= most]
                    runs.append({"problem": space.problem, "strategy": strategy, "budget": budget, "seed": seed,
                                 "trials": most, "improvements": within})  # fmt: skip
    return runs


def read_runs(path):
    """Of a file that a stop may have cut short."""
    runs = []
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            runs.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return runs


def resume(path):
    """The runs of a file, which is rewritten without what a stop cut short: the next run is a line of its own."""
    runs = read_runs(path)
    whole = path.with_suffix(".part")
    whole.write_text("".join(json.dumps(run) + "\n" for run in runs))
    os.replace(whole, path)
    return runs


def place_of(run):
    """What a run, or what does not run, is of, whatever its seed."""
    return run.get("device"), run["problem"], run["strategy"], run["budget"]


def wanted(runs, spaces, strategies, budgets, seeds):
    """[(seed, problem, strategy, budget)] that are not among the runs, all of one seed first: whatever is stopped has
    about as many of each. `spaces`: {problem: kernel_tuner_runs.Space}."""
    done = {(run["seed"], *place_of(run)) for run in runs}
    return [
        (seed, problem, strategy, budget)
        for seed in range(1, seeds + 1)
        for problem, space in spaces.items()
        for budget in budgets
        for strategy in strategies
        if (seed, space.device, problem, strategy, budget) not in done
    ]


def run_kernel_tuner(spaces, strategies, options, out):
    """Appends to kernel_tuner.jsonl. What does not run within options.most_seconds: [{"device", "problem", "strategy",
    "budget", "most_seconds", "why"}]; unable.json has that of earlier calls, too."""
    path = out / "kernel_tuner.jsonl"
    unable_path = out / "unable.json"
    unable = json.loads(unable_path.read_text()) if unable_path.exists() else []
    todo = wanted(resume(path), spaces, strategies, options.budgets, options.seeds)
    with path.open("a") as file:
        for i, (seed, problem, strategy, budget) in enumerate(todo, 1):
            space = spaces[problem]
            place = {"device": space.device, "problem": problem, "strategy": strategy, "budget": budget}
            if is_unable(unable, place, options.most_seconds):
                continue
            try:
                run = kernel_tuner_runs.run_of(space, strategy, budget, seed, options.most_seconds)
            except kernel_tuner_runs.Unable as error:
                unable = [each for each in unable if place_of(each) != place_of(place)]
                unable.append({**place, "most_seconds": options.most_seconds, "why": str(error)})
                unable_path.write_text(json.dumps(unable, indent=1) + "\n")
                continue
            file.write(json.dumps(run) + "\n")
            file.flush()
            if i % 100 == 0:
                print(f"{i} of {len(todo)} runs", flush=True)
    return [each for each in unable if is_unable([each], each, options.most_seconds)]


def is_unable(unable, run, most_seconds):
    """Whether its strategy failed there when it had as long, or longer."""
    return any(place_of(each) == place_of(run) and each.get("most_seconds", 0) >= most_seconds for each in unable)


def validate(files):
    """ValidationError where a file is not of the T4 schema that Kernel Tuner ships."""
    import jsonschema
    import kernel_tuner

    folder = pathlib.Path(kernel_tuner.__file__).parent / "schema" / "T4" / "1.0.0"
    schema = json.loads((folder / "results-schema.json").read_text())
    for file in files:
        jsonschema.Draft202012Validator(schema).validate(json.loads(file.read_text()))


def export(options, out):
    """Cache files of the recordings that are large enough. Exits where two recordings are of one problem: the files
    are named by it."""
    caches, results = out / "caches", out / "t4"
    for folder in (caches, results):
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("*.json"):
            old.unlink()
    family = ["--family", options.family] if options.family else []
    command = [options.replay, "export", *family, "--kernel-tuner", caches, "--t4", results, *options.recordings]
    run = subprocess.run(list(map(str, command)), check=True, stdout=subprocess.PIPE, text=True)
    exported = collections.Counter(line.split(": ")[0] for line in run.stdout.splitlines())
    twice = [problem for problem, count in exported.items() if count > 1]
    if twice:
        sys.exit(f"kernel_tuner_league.py: {twice[0]} is in several of the recordings; name one of each problem")
    validate(sorted(results.glob("*.json")))
    return [path for path in sorted(caches.glob("*.json")) if space_of(path).variants >= options.least]


def play_ours(options, spaces, out):
    """The same recordings by attune-replay."""
    family = ["--family", options.family] if options.family else []
    path = out / "ours.csv"
    command = [options.replay, "league", *family, "--seeds", options.seeds, "--limit", max(options.budgets)]
    command += ["--strategies", ",".join(OURS), "--curves", path, *options.recordings]
    subprocess.run(list(map(str, command)), check=True, stdout=subprocess.DEVNULL)
    return our_runs(path.read_text().splitlines(), spaces, options.budgets, options.seeds)


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recordings", nargs="+", metavar="RECORDING")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="directory for what is written")
    parser.add_argument("--replay", type=pathlib.Path, default=ROOT / "build" / "bin" / "attune-replay")
    parser.add_argument("--family", default="", help="needed where a recording has several")
    parser.add_argument("--seeds", type=int, default=20, help="runs of each")
    parser.add_argument("--budgets", type=lambda text: [float(each) for each in text.split(",")], default=[0.1, 0.25],
                        help="shares of the space; default 0.1,0.25")  # fmt: skip
    parser.add_argument("--strategies", type=lambda text: text.split(","), default=kernel_tuner_runs.STRATEGIES,
                        help="Kernel Tuner's; default all for one objective that search")  # fmt: skip
    parser.add_argument("--least", type=int, default=20, help="variants; smaller spaces are left out")
    parser.add_argument(
        "--most-seconds",
        type=int,
        default=60,
        help="of the CPU; a strategy that needs longer for a run is left out there",
    )
    parser.add_argument("--chosen", type=pathlib.Path, default=CHOSEN,
                        help="names the problems that guided's settings were chosen on")  # fmt: skip
    options = parser.parse_args(arguments)
    if options.seeds < 1:
        parser.error(f"--seeds is {options.seeds}; it must be at least 1")
    if not options.budgets or max(options.budgets) > 1 or min(options.budgets) <= 0:
        parser.error("--budgets must be shares above 0 and at most 1")
    if max(options.budgets) < league_report.HORIZON:
        parser.error(f"--budgets: one must be at least {league_report.HORIZON}, which the criterion looks at")
    unknown = [name for name in options.strategies if name not in kernel_tuner_runs.STRATEGIES]
    if unknown:
        allowed = ", ".join(kernel_tuner_runs.STRATEGIES)
        parser.error(f"--strategies has '{unknown[0]}'; allowed: {allowed}")
    return options


def main(arguments=None):
    kernel_tuner_runs.one_core()
    options = parse(arguments)
    try:
        import kernel_tuner  # noqa: F401
    except ImportError:
        sys.exit("kernel_tuner_league.py needs Kernel Tuner: pip install kernel_tuner==1.5.0")
    options.out.mkdir(parents=True, exist_ok=True)
    caches = export(options, options.out)
    spaces = [space_of(path) for path in caches]
    played = {space.problem: space for space in map(kernel_tuner_runs.Space, caches)}
    unable = run_kernel_tuner(played, options.strategies, options, options.out)
    devices = {(space.device, problem) for problem, space in played.items()}
    theirs = [
        run
        for run in read_runs(options.out / "kernel_tuner.jsonl")
        if place_of(run)[:2] in devices and run["budget"] in options.budgets and run["seed"] <= options.seeds
        and run["strategy"] in options.strategies and not is_unable(unable, run, options.most_seconds)
    ]  # fmt: skip
    runs = play_ours(options, spaces, options.out) + theirs
    table = league_report.rows(runs, spaces)
    drawn = league_plot.plot(runs, spaces, table, options.out / "curves.svg")
    unable = [each for each in unable if place_of(each)[:2] in devices]
    text = league_report.report(table, set(named(options.chosen)), unable, "curves.svg" if drawn else None)
    (options.out / "report.md").write_text(text)
    print(text.split("## Each problem")[0])


if __name__ == "__main__":
    main()
