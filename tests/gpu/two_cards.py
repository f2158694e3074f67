"""Two GPUs of one class in one daemon: python3 tests/gpu/two_cards.py --bundle BUNDLE --out OUT [--parts PART ...]

What tests/e2e/two_cards_test.py shows on PoCL, on a host with two GPUs (a bundle: deploy/bundle), in parts:

answers  the second card answers at once with its sister's winner, compiles nothing again, tries no rejected variant
         again and takes its own times
sweep    a sweep of 40 problems over both cards takes how long, beside the same sweep on one. Each begins with all code
         compiled and no trial of its policy, in a copy of one data directory
cards    one problem's whole space tuned on one card and with --cards 2 takes how long, begun in the same way, and do
         both choose alike

Writes OUT/two_cards.json after each part; ends with 1 where something does not hold.
"""

import argparse
import collections
import json
import pathlib
import shutil
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from daemon import ROOT, Daemon

PROBLEM = "b2.h8.q512.d64.f16"
TUNING = ("--strategy=random", "--seed=3", "--max-trials=24")
# Long rows over few heads of K and V: most of a trial is the kernel's, little is data that the host prepares or reads.
PLAN = """
shapes {
  product {
    batch: 1
    heads_q: [4, 6, 8, 12, 16]
    heads_kv: 2
    seq_q: [1536, 2048, 2560, 3072, 4096, 5120, 6144, 8192]
    head_dim: 128
    mask: "causal"
  }
}
budget { trials_per_problem: %d }
families: "attention_mma"
"""
PROBLEMS = 40
RATIO = 1 / 1.8  # of one card's time, at most
SPACE = "b1.h32.kvh8.q2048.d128.f16.causal"
SPACE_FAMILIES = ("--family=attention_mma", "--family=attention_hopper")
SPACE_RATIO = 0.6  # the play-off is on one card
ALIKE = 1.02  # what one winner may take in the time of the other


class Checks:
    def __init__(self):
        self.failed = []

    def __call__(self, holds, what):
        print("ok    " if holds else "FAILED", what, flush=True)
        if not holds:
            self.failed.append(what)


def sisters(daemon):
    """The ids of the first two cards of one class, and the class."""
    cards = [line for line in daemon.attune("devices") if line["type"] == "device"]
    for first in cards:
        for second in cards:
            if first["device"] < second["device"] and first["class"] == second["class"]:
                return first["device"], second["device"], first["class"]
    sys.exit(f"two_cards: no two cards of one class among {[card['device'] for card in cards]}")


def timed(daemon, *arguments):
    begin = time.monotonic()
    lines = daemon.attune(*arguments, check=False)
    for row in lines[-1].get("rows", []):
        if row["outcome"] == "FAILED":
            print(f"{row['problem']} on {row['device']}: {row['reason']}", flush=True)
    return time.monotonic() - begin, lines[-1]


def share_answers(daemon, check):
    first, second, alias = sisters(daemon)
    cold, _ = timed(daemon, "--device", first, "tune", PROBLEM, *TUNING)
    own = daemon.attune("--device", first, "best", PROBLEM)[0]
    answer_s, answer = timed(daemon, "--device", second, "best", PROBLEM)
    check(
        answer["variant"] == own["variant"] and answer["provenance"] in ("EXACT", "TIE"),
        f"{second} is answered with {first}'s winner, {answer['provenance']}: {answer['provenance_detail']}",
    )
    warm, _ = timed(daemon, "--device", second, "tune", PROBLEM, *TUNING)
    trials = {card: {t["variant"]: t for t in daemon.attune("--device", card, "trials", PROBLEM, "--limit=0")}
              for card in (first, second)}  # fmt: skip
    rejected = {variant for variant, trial in trials[first].items() if trial["verdict"] != "OK"}
    again = set(trials[first]) & set(trials[second])
    check(
        not rejected & set(trials[second]),
        f"none of {len(rejected)} rejected variants is tried again",
    )
    check(len(again) > 0, f"{len(again)} of {len(trials[first])} variants are timed again")
    check(
        all(trials[second][v]["compile_ms"] is None for v in again),
        "and none of them is compiled again",
    )
    check(
        not {trials[first][v]["trial"] for v in again} & {trials[second][v]["trial"] for v in again},
        "in trials of their own",
    )
    check(
        len(daemon.attune("--device", alias, "summary")) == 1,
        "both are served one incumbent",
    )
    return {
        "class": alias, "tune_first_s": cold, "tune_second_s": warm, "answer_s": answer_s, "variant": own["variant"],
        "timed_again": len(again), "rejected": len(rejected),
        "latency_ms": {card: trials[card][own["variant"]]["latency_ms"] for card in (first, second)
                       if own["variant"] in trials[card]},
    }  # fmt: skip


def sweep_times(bundle, directory, kernels, trials, check):
    """Seconds of the same sweep on one card and on both."""
    plan = directory / "plan.textproto"
    plan.write_text(PLAN % trials)
    compiled = directory / "compiled"
    compiled.mkdir()
    with Daemon(bundle, compiled, kernels) as daemon:
        first, _, alias = sisters(daemon)
        seconds, report = timed(daemon, "--device", alias, "sweep", str(plan))
        print(f"compiled and timed HOT on both: {seconds:.1f} s, {report['trials']} trials", flush=True)
    result = {"compiled_s": seconds}
    for cards, device in (("one", first), ("two", alias)):
        shutil.copytree(compiled / "data", directory / cards / "data")
        with Daemon(bundle, directory / cards, kernels) as daemon:
            seconds, report = timed(daemon, "--device", device, "--policy=cold", "sweep", str(plan))
            result[cards] = {
                "seconds": seconds, "trials": report["trials"], "compiles": report["compiles"],
                "outcomes": dict(collections.Counter(row["outcome"] for row in report["rows"])),
                "rows": dict(collections.Counter(row["device"] for row in report["rows"])),
            }  # fmt: skip
            print(f"{cards}: {seconds:.1f} s, {result[cards]}", flush=True)
        check(
            len(report["rows"]) == PROBLEMS and result[cards]["outcomes"] == {"NEW": PROBLEMS},
            f"on {cards} all {PROBLEMS} problems are tuned, none of them before",
        )
    result["ratio"] = result["two"]["seconds"] / result["one"]["seconds"]
    check(
        result["ratio"] <= RATIO,
        f"the sweep over both cards takes {result['ratio']:.3f} of one card's time, {1 / result['ratio']:.2f}x; "
        f"wanted: {RATIO:.3f}, {1 / RATIO:.2f}x",
    )
    return result


def share_trials(bundle, directory, kernels, problem, check):
    """Seconds of one problem's whole space on one card and on both, and what each chose."""
    space = ("tune", problem, *SPACE_FAMILIES, "--strategy=exhaustive")
    compiled = directory / "compiled"
    compiled.mkdir()
    with Daemon(bundle, compiled, kernels) as daemon:
        _, _, alias = sisters(daemon)
        seconds, _ = timed(daemon, "--device", alias, *space, "--cards=2")
        print(f"compiled and timed HOT on both: {seconds:.1f} s", flush=True)
    result = {"problem": problem, "compiled_s": seconds}
    for cards in (1, 2):
        own = directory / str(cards)
        shutil.copytree(compiled / "data", own / "data")
        with Daemon(bundle, own, kernels) as daemon:
            seconds, tuning = timed(daemon, "--device", alias, "--policy=cold", *space, f"--cards={cards}")
            trials = daemon.attune("--policy=cold", "trials", problem, "--limit=0")
            result[str(cards)] = {
                "seconds": seconds, "cards": tuning["cards"], "cost": daemon.attune("jobs")[0]["cost"],
                "trials": dict(collections.Counter(trial["device"] for trial in trials)),
                "compiles": sum(trial["compile_ms"] is not None for trial in trials),
                "variant": tuning["winner"]["variant"], "latency_ms": tuning["winner"]["latency_ms"],
            }  # fmt: skip
            print(f"{cards} card(s): {seconds:.1f} s, {result[str(cards)]}", flush=True)
        check(result[str(cards)]["compiles"] == 0, f"with {cards} nothing is compiled again")
    one, two = result["1"], result["2"]
    result["ratio"] = two["seconds"] / one["seconds"]
    check(
        result["ratio"] <= SPACE_RATIO,
        f"with two cards it takes {result['ratio']:.3f} of one card's time; wanted: {SPACE_RATIO}",
    )
    apart = max(one["latency_ms"], two["latency_ms"]) / min(one["latency_ms"], two["latency_ms"])
    check(
        one["variant"] == two["variant"] or apart <= ALIKE,
        f"the winners are {one['variant']}, {one['latency_ms']} ms, and {two['variant']}, {two['latency_ms']} ms",
    )
    return result


PARTS = ("answers", "sweep", "cards")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bundle", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="run only these")
    parser.add_argument("--trials", type=int, default=8, help=f"of each of the sweep's {PROBLEMS} problems")
    parser.add_argument("--problem", default=SPACE, help="whose whole space is tuned, default: %(default)s")
    arguments = parser.parse_args()
    bundle = arguments.bundle.resolve()
    arguments.out.mkdir(parents=True, exist_ok=True)
    check = Checks()
    kernels = [ROOT / "kernels_src"]
    result = {}
    with tempfile.TemporaryDirectory() as directory:
        for part in arguments.parts:
            own = pathlib.Path(directory, part)
            own.mkdir()
            if part == "answers":
                with Daemon(bundle, own, kernels) as daemon:
                    result[part] = share_answers(daemon, check)
            elif part == "sweep":
                result[part] = sweep_times(bundle, own, kernels, arguments.trials, check)
            else:
                result[part] = share_trials(bundle, own, kernels, arguments.problem, check)
            result["failed"] = check.failed
            (arguments.out / "two_cards.json").write_text(json.dumps(result, indent=1) + "\n")
    return 1 if check.failed else 0


if __name__ == "__main__":
    sys.exit(main())
