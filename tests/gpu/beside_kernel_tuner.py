#!/usr/bin/env python3
"""attune and Kernel Tuner on the same variants: python3 tests/gpu/beside_kernel_tuner.py --bundle BUNDLE --out OUT

On a GPU host, from a bundle (deploy/bundle) with the Python client in BUNDLE/site; needs kernel_tuner 1.5, cupy and
torch. About 15 minutes. Of each PROBLEM[:TRIALS], attune tunes TRIALS random variants of attention_mma (0: all) from an
empty database ("cold"), then the same once more ("warm"). Kernel Tuner then tunes exactly these, in random order, from
an empty cache, until it has tried all or --limit is over; with its cupy back end it tries these once more, from the
cache that this has left. Its rate is that of what it tried.

Writes OUT/kernel_tuner.json and .md: variants a second, of the whole operation and of its trials alone; how many
variants both found right; how their times of the same variants compare. Ends with 1 where something failed, or where
one alone finds a result right.
"""

import argparse
import datetime
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import configurations
import kernel_tuner_report
import throughput
from daemon import ROOT, Daemon, import_client

RUN = pathlib.Path(__file__).resolve().with_name("kernel_tuner_run.py")
PROBLEMS = ["b7.h12.q197.d64.f16:0", "b2.h8.q512.d64.f16:48", "b4.h16.q4096.d128.f16:48"]
FAMILY = "attention_mma"
GRACE_S = 120  # imports, the reference, and the variant that is tried when the limit is over


def parsed(text):
    """("b2.h8.q512.d64.f16", 48) of the command line's PROBLEM:TRIALS."""
    problem, colon, trials = text.partition(":")
    if colon and not trials.isdecimal():
        raise ValueError(f"'{text}': behind the colon stands how many variants are tried, 0 for all")
    if (
        any(word in problem.split(".") for word in ("bshd", "varlen", "lse", "sinks"))
        or "page" in problem
        or ".kve" in problem
    ):
        raise ValueError(f"'{problem}': Kernel Tuner is given Q, K, V and O alone, in the layout bhsd and of 16 bits")
    return problem, int(trials or 0)


def tried(client, problem):
    """({variant: what the daemon found}, {variant: recipe}), variants in random order, the same in each run."""
    names = sorted((trial.variant.text, trial.name) for trial in client.trials(problem, family=FAMILY))
    random.Random(1).shuffle(names)
    found, recipes = {}, {}
    for text, name in names:
        trial = client.trial(name)
        found[text] = {
            "verdict": trial.verdict.name,
            "median_us": trial.timing.median_us if trial.timing else None,
            "given_up": bool(trial.timing and trial.timing.given_up),
            "identical_to": trial.identical_to,
            "toolchain": trial.dependencies.toolchain,
        }
        if trial.recipe is not None:
            recipes[trial.variant] = trial.recipe
    return found, recipes


def tuned_by_attune(bundle, attune, problem, trials, scratch):
    """The problem's part of the results, without Kernel Tuner's; the space for that; the device."""
    step = throughput.Step(problem, problem, trials=trials, whole=not trials)
    with Daemon(bundle, scratch, [ROOT / "kernels_src"]) as daemon, attune.Client(daemon.address) as client:
        device = next((each for each in client.devices() if each.id == "cuda:0"), None)
        if device is None:
            sys.exit(f"no device cuda:0:\n{(scratch / 'attuned.log').read_text()[-2000:]}")
        rows = {"cold": throughput.tune(daemon, step, FAMILY, trials, again=False)}
        found, recipes = tried(client, problem)
        rows["warm"] = throughput.tune(daemon, step, FAMILY, trials, again=True)
        # A draw begins with what is served, which the first one found: it may end one variant earlier.
        rows["warm"]["others"] = len(
            {each.variant.text for each in client.trials(problem, family=FAMILY)} - found.keys()
        )
    for kind, row in rows.items():
        print(f"{problem} attune {kind}: {json.dumps(row)}", flush=True)
    errors = [f"{text} has no recipe: {found[text]['verdict']}" for text in found.keys() - {v.text for v in recipes}]
    space = None
    try:
        space = configurations.space(problem, FAMILY, recipes)
    except ValueError as error:
        errors.append(str(error))
    return {"problem": problem, "trials": found, "attune": rows, "kernel_tuner": [], "errors": errors}, space, device


def by_kernel_tuner(space, backend, kind, bundle, scratch, limit_s):
    """Its result, or what went wrong. `scratch` has the caches, which are empty when `kind` is cold."""
    file, result = scratch / "space.json", scratch / f"{backend}-{kind}.json"
    file.write_text(json.dumps(space))
    paths = [
        str(bundle / "site"),
        os.environ.get("PYTHONPATH", ""),
        str(ROOT / "client/python"),
        str(ROOT / "client/bench"),
    ]
    caches = {"CUPY_CACHE_DIR": f"{scratch}/cupy-{backend}", "CUDA_CACHE_PATH": f"{scratch}/cuda-{backend}"}
    command = [sys.executable, str(RUN), str(file), str(result), f"--backend={backend}", f"--limit={limit_s}"]
    environment = {**os.environ, **caches, "PYTHONPATH": ":".join(filter(None, paths))}
    try:
        run = subprocess.run(
            command, cwd=scratch, env=environment, capture_output=True, text=True, timeout=limit_s + GRACE_S
        )
    except subprocess.TimeoutExpired:
        return None, f"Kernel Tuner, {backend} {kind}, did not end within {limit_s + GRACE_S:.0f} s"
    if run.returncode:
        return None, f"Kernel Tuner, {backend} {kind}, ended with {run.returncode}: {(run.stdout + run.stderr)[-3000:]}"
    return json.loads(result.read_text()) | {"kind": kind}, ""


def write(out, results):
    heading = f"attune and Kernel Tuner, {results['date'][:10]}"
    (out / "kernel_tuner.json").write_text(json.dumps(results, indent=1) + "\n")
    (out / "kernel_tuner.md").write_text("\n".join(kernel_tuner_report.markdown(results, heading)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bundle", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--backend", action="append", choices=["cupy", "nvcuda"], help="default: both")
    parser.add_argument("--limit", type=float, default=150, help="seconds for each of Kernel Tuner's tunings")
    parser.add_argument("problems", nargs="*", metavar="PROBLEM[:TRIALS]", help=f"default: {' '.join(PROBLEMS)}")
    options = parser.parse_args()
    try:
        problems = [parsed(text) for text in options.problems or PROBLEMS]
    except ValueError as error:
        parser.error(str(error))
    bundle = options.bundle.resolve()
    attune = import_client(bundle)
    options.out.mkdir(parents=True, exist_ok=True)
    results = {"date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"), "problems": []}
    results |= {"cores": os.cpu_count(), "versions": {}}
    for problem, trials in problems:
        with tempfile.TemporaryDirectory(prefix="attune-kernel-tuner-") as name:
            scratch = pathlib.Path(name)
            found, space, device = tuned_by_attune(bundle, attune, problem, trials, scratch)
            results |= {"device": device.model, "driver": device.driver}
            results["problems"].append(found)
            runs = [(backend, "cold") for backend in options.backend or ["cupy", "nvcuda"]]
            # nvcuda compiles by NVRTC each time and has the driver alone keep what it made of that: it is never warm.
            runs += [("cupy", "warm")] if ("cupy", "cold") in runs else []
            compiled = 0
            for backend, kind in runs if space else []:
                part = configurations.first(space, compiled) if kind == "warm" else space
                if not part["variants"]:
                    continue
                run, error = by_kernel_tuner(part, backend, kind, bundle, scratch, options.limit)
                if run:
                    found["kernel_tuner"].append(run)
                    if (backend, kind) == ("cupy", "cold"):
                        compiled = len(run["rows"])
                    results["versions"] = run["versions"]
                    rate = kernel_tuner_report.other_rates(run)[0]
                    print(
                        f"{problem} {backend} {kind}: {len(run['rows'])} in {run['seconds']:.1f} s, {rate:.2f}/s",
                        flush=True,
                    )
                else:
                    found["errors"].append(error)
                write(options.out, results)
    failed = list(kernel_tuner_report.failures(results))
    for line in failed:
        print(f"FAILED {line}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
