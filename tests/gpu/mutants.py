#!/usr/bin/env python3
"""Plants bugs into the CUDA families and says of each whether the daemon's checks find it; the same of kernels that
would deceive them. On a GPU host, from a bundle (deploy/bundle); about 2 minutes.

    python3 tests/gpu/mutants.py --bundle bundle --out out

A bug is a piece of text changed in a copy of a family (bugs/*.txt, planted_cheats.py). A daemon takes a few such copies
beside the families as they are, and evaluates of each the one variant that has the bug, on the problem where it shows;
then the same variants of the families as they are, which must be OK: nobody is blamed for another. These daemons share
the GPU: times mean nothing, races show as on a device that others use, and nothing is promoted from a contended
play-off. So what is still OK is evaluated again by a daemon that has the GPU for itself and serves nothing yet, where a
second check and many runs come before a promotion. Writes OUT/mutants.json and prints a table; `--show FILE` prints that
of an earlier run. Ends with 1 when a bug is missed that should be found, a cheat has another verdict, or an honest
variant is not OK.
"""

import argparse
import collections
import concurrent.futures
import datetime
import itertools
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import planted
from daemon import Daemon, environment
from planted_all import ALL

FOUND = ("WRONG_RESULT", "OUT_OF_BOUNDS", "UNSTABLE", "CRASHED", "TIMEOUT")
A_DAEMONS = 6  # mutants of one daemon at most
ANSWER_S = 120  # for one evaluation


def newest(daemon, problem, variant):
    """The last trial of a variant, or None."""
    trials = [each for each in daemon.attune("trials", problem, check=False) if each.get("variant") == variant]
    return max(trials, key=lambda trial: trial["finish_time"], default=None)


def answer(daemon, problem, variant):
    """{verdict, detail, reason, seconds} of a variant."""
    start = time.monotonic()
    command = [daemon.bundle / "attune", "--server", daemon.address, "--format=json", "evaluate", problem, variant]
    try:
        run = subprocess.run(command, capture_output=True, text=True, env=environment(daemon.bundle), timeout=ANSWER_S)
        lines = [json.loads(line) for line in run.stdout.splitlines()]
        error = run.stderr.strip()[-600:]
    except subprocess.TimeoutExpired:
        lines, error = [], f"no answer within {ANSWER_S} s"
    seconds = round(time.monotonic() - start, 2)
    for line in lines:
        if line.get("type") == "evaluation":
            trial = line["trial"]
            if line.get("reason") == "no variant is right and timed":  # what came of its play-off is a trial of its own
                trial = newest(daemon, problem, variant) or trial
            found = {
                "verdict": trial["verdict"],
                "detail": trial.get("detail") or "",
                "reason": line.get("reason") or "",
            }
            return found | {"seconds": seconds}
    return {"verdict": "", "detail": error, "reason": "", "seconds": seconds}


def check_of(verdict, detail):
    """Which of the checks found it, from what the daemon says (server/verify, server/worker/device_session.cc)."""
    second = "second check, " if "second check" in detail else ""
    inputs = re.search(r"inputs '([^']+)'", detail)
    if verdict not in FOUND:
        return ""
    if verdict in ("CRASHED", "TIMEOUT"):
        return "worker"
    if "while it was timed" in detail:
        return second + "after timing" + (", new inputs" if "new inputs" in detail else "")
    if re.search(r"\brun \d+: ", detail):
        return f"many runs, {inputs.group(1)}" if inputs else "many runs"
    if "scratch" in detail:
        return second + "scratch"
    if "second run" in detail:
        return second + "second run" + (f", {inputs.group(1)}" if inputs else "")
    if inputs:
        return second + inputs.group(1)
    return second + ("time" if verdict == "UNSTABLE" else "guards")


def is_found(result):
    """Times that do not settle, beside other daemons, are no finding."""
    return result["verdict"] in FOUND and "do not settle" not in result["detail"]


def chunks(mutants):
    """What one daemon takes: of one problem, with few different variants. Cheats by themselves."""

    def key(mutant):
        return (mutant.problem, mutant.kind == "cheat")

    def code(mutant):
        return (*key(mutant), bool(mutant.missed), mutant.family, sorted(mutant.variant.items()))

    for _, group in itertools.groupby(sorted(mutants, key=code), key):
        group = list(group)
        count = -(-len(group) // A_DAEMONS)
        size = -(-len(group) // count)
        yield from (group[first : first + size] for first in range(0, len(group), size))


def honest_variants(mutants):
    """{variant text: the mutants that it is the honest one of}."""
    found = collections.defaultdict(list)
    for mutant in mutants:
        found[planted.variant_text(mutant.family, mutant.family, mutant.honest or mutant.variant)].append(mutant)
    return found


def result_of(mutant, variant, own):
    return {
        "kind": mutant.kind, "name": mutant.name, "family": mutant.family, "problem": mutant.problem,
        "variant": variant,
        "expected": mutant.expected or ("missed" if mutant.missed else "found"), "why": mutant.missed, **own,
        "check": check_of(own["verdict"], own["detail"]),
    }  # fmt: skip


def untried(mutant, error):
    nothing = {"verdict": "", "detail": error, "reason": "", "seconds": 0}
    return result_of(mutant, "", nothing) | {"honest": nothing}


def evaluate(daemon, mutant, variant, results):
    results[mutant.folder] = result_of(mutant, variant, answer(daemon, mutant.problem, variant))


def devices(daemon):
    return [
        {"model": line["model"], "driver": line.get("driver"), "target": line.get("target")}
        for line in daemon.attune("devices")
        if line.get("device") == "cuda:0"
    ]


def run_chunk(bundle, directory, mutants, flags):
    """{folder: result} of a daemon of its own, and its device; `honest` are answers of the families as they are."""
    directory.mkdir()
    families = directory / "families"
    families.mkdir()
    roots = [planted.KERNELS, planted.TESTS] + [planted.write(mutant, families) for mutant in mutants]
    results = {}
    with Daemon(bundle, directory, roots, flags) as daemon:
        jobs = [(mutant, planted.variant_text(mutant.folder, mutant.family, mutant.variant)) for mutant in mutants]
        if mutants[0].kind == "cheat":  # each with its honest twin right behind it
            for mutant, variant in jobs:
                evaluate(daemon, mutant, variant, results)
                twin = planted.variant_text(mutant.folder, mutant.family, mutant.honest)
                honest = planted.variant_text(mutant.family, mutant.family, mutant.honest)
                of = honest if mutant.family.startswith("attention_") else twin
                results[mutant.folder]["honest"] = answer(daemon, mutant.problem, of)
            return results, devices(daemon)
        # A device's lane has two jobs: one compiles while the other has the device.
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda job: evaluate(daemon, *job, results), jobs))
        for honest, of in honest_variants(mutants).items():
            said = answer(daemon, mutants[0].problem, honest)
            for mutant in of:
                results[mutant.folder]["honest"] = said
        return results, devices(daemon)


def judge(results):
    """What is not as it must be."""
    for result in results:
        name = f"{result['family']} {result['name']}"
        said = f"{result['verdict'] or 'no answer'}: {result['detail']}"
        if result["verdict"] not in ("OK", *FOUND):
            yield f"{name} was not tried: {said}"
        elif result["expected"] == "found" and not is_found(result):
            yield f"{name} is missed: {said}"
        elif result["expected"] not in ("found", "missed", planted.EITHER, result["verdict"]):
            yield f"{name} should be {result['expected']}: {said}"
        honest = result["honest"]
        if honest["verdict"] != "OK" and "do not settle" not in honest["detail"]:
            yield f"{name}: its honest variant is {honest['verdict'] or 'without an answer'}: {honest['detail']}"


def table(report):
    """Markdown, a row each, by kind."""
    yield "| kind | family | planted | problem | verdict | found by |"
    yield "|---|---|---|---|---|---|"
    kinds = list(dict.fromkeys(result["kind"] for result in report["results"]))
    for result in sorted(report["results"], key=lambda result: kinds.index(result["kind"])):
        found = result["check"] if is_found(result) else f"**missed**{': ' + result['why'] if result['why'] else ''}"
        family = result["family"].removeprefix("attention_")
        name = result["name"].replace("_", " ") if result["name"] != "as_it_is" else "itself"
        yield f"| {result['kind']} | {family} | {name} | {result['problem']} | {result['verdict']} | {found} |"


def summary(results):
    bugs = [result for result in results if result["kind"] != "cheat"]
    cheats = [result for result in results if result["kind"] == "cheat"]
    for what, of in (("bugs", bugs), ("cheats", cheats)):
        found = sum(is_found(result) for result in of)
        named = sum(not is_found(result) and result["expected"] in ("missed", planted.EITHER) for result in of)
        yield f"{len(of)} {what}: {found} found, {named} missed as expected, {len(of) - found - named} missed"


def show(report):
    print("\n".join([*table(report), "", *summary(report["results"])]))


def is_to_be_asked_alone(result):
    """A play-off beside other daemons' ends before what comes after it: the second check, and many runs."""
    return result["verdict"] == "OK"


def run(bundle, mutants, at_once, daemon_flags=()):
    """Reports, each with the results of one daemon more: of all side by side, then of what was not found by itself."""
    start = time.monotonic()
    flags = ["--compile_workers=2", "--trial_timeout=8s", *daemon_flags]
    results, device = {}, []

    def report():
        seconds = round(time.monotonic() - start)
        print(f"{seconds:4} s: {len(results)} of {len(mutants)}", file=sys.stderr, flush=True)
        known = [results[mutant.folder] for mutant in mutants if mutant.folder in results]
        return {
            "command": " ".join(["tests/gpu/mutants.py", *sys.argv[1:]]),
            "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
            "seconds": seconds,
            "device": device,
            "failures": list(judge(known)),
            "results": known,
        }

    with tempfile.TemporaryDirectory(prefix="attune-mutants-") as directory:
        with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
            ordered = sorted(chunks(mutants), key=len, reverse=True)
            started = {
                pool.submit(run_chunk, bundle, pathlib.Path(directory, str(number)), chunk, flags): chunk
                for number, chunk in enumerate(ordered)
            }
            for done in concurrent.futures.as_completed(started):
                try:
                    found, device = done.result()
                except SystemExit as error:  # the daemon did not start
                    found = {mutant.folder: untried(mutant, str(error)[-600:]) for mutant in started[done]}
                results |= found
                yield report()
        alone = [mutant for mutant in mutants if is_to_be_asked_alone(results[mutant.folder])]
        for mutant in alone:
            try:
                found, device = run_chunk(bundle, pathlib.Path(directory, mutant.folder), [mutant], flags)
            except SystemExit as error:
                found = {mutant.folder: untried(mutant, str(error)[-600:])}
            results |= {folder: result | {"alone": True} for folder, result in found.items()}
            yield report()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bundle", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--only", default="", metavar="NAME", help="those with this in their family, kind or name")
    parser.add_argument(
        "--daemon-flag", action="append", default=[], metavar="FLAG", help="of attuned, as in --daemon-flag=--verify=host"
    )
    parser.add_argument("--at-once", type=int, default=14, metavar="N", help="daemons at once (14)")
    parser.add_argument(
        "--scrub",
        action="store_true",
        help="also attention_mma's races in kernels that fill their shared memory with NaN first",
    )
    parser.add_argument("--show", type=pathlib.Path, metavar="FILE", help="print the table of an earlier mutants.json")
    arguments = parser.parse_args()
    if arguments.show:
        return show(json.loads(arguments.show.read_text()))
    if not arguments.bundle or not arguments.out:
        parser.error("--bundle and --out are needed")
    bundle = arguments.bundle.resolve()
    if not (bundle / "attuned").exists():
        parser.error(f"--bundle={arguments.bundle}: there is no attuned in it; deploy/bundle makes one")
    races = [each for each in ALL if (each.kind, each.family) == ("race", "attention_mma")]
    everything = ALL + [planted.scrubbed(each) for each in races if arguments.scrub]
    mutants = [each for each in everything if arguments.only in f"{each.family} {each.kind} {each.name}"]
    if not mutants:
        parser.error(f"--only={arguments.only}: no planted bug has this in its family, kind or name")
    arguments.out.mkdir(parents=True, exist_ok=True)
    report = {}
    for report in run(bundle, mutants, arguments.at_once, arguments.daemon_flag):  # what there is so far, should the run be cut short
        (arguments.out / "mutants.json").write_text(json.dumps(report, indent=1) + "\n")
    show(report)
    for failure in report["failures"]:
        print(f"FAILED {failure}")
    return 1 if report["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())
