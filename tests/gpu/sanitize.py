#!/usr/bin/env python3
"""Runs one variant of each code path of the CUDA families under compute-sanitizer's memcheck, racecheck, synccheck and
initcheck, and the seeded defects of tests/families/unsanitary_cuda, which must be reported. On a GPU host, from
a bundle with the Python client (client/python/tests/gpu/bundle.bash); about 3 minutes.

    python3 tests/gpu/sanitize.py --bundle bundle --out out
    cp out/sanitize.json tests/gpu/sanitize.json

The daemon compiles, checks and times each variant; then launch.py runs it outside the daemon's sandbox. With --dry-run
and a device such as profile:h200 it only says which variants it would run.
"""

import argparse
import collections
import concurrent.futures
import contextlib
import datetime
import json
import pathlib
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import code_paths
import evidence
import jobs
import sanitizer
from choose import choose, listed
from code_paths import Path
from daemon import ROOT, Daemon, import_client

KERNELS = [ROOT / "kernels_src", ROOT / "tests/families"]
LAUNCH = pathlib.Path(__file__).resolve().parent / "launch.py"


def planted_paths():
    return [
        Path(f"planted {bad}" if bad else "planted none", "unsanitary_cuda", code_paths.PLANTED_PROBLEM, {"BAD": bad})
        for bad in (0, *code_paths.PLANTED)
    ]


def entry_of(client, path, device):
    """What the evidence keeps of a path, with the variant that is to run or why none is."""
    entry = {"path": path.name, "family": path.family, "problem": path.problem}
    if path.expected != "OK":
        entry["expected"] = path.expected
    variants, reason = listed(client, path.problem, path.family, device)
    if not variants:
        return {**entry, "failed": reason}
    chosen = choose(variants, path.must, code_paths.LIKE.get(path.family, {}))
    return {**entry, "variant": chosen.text} if chosen else {**entry, "failed": "no variant of this path is offered"}


def prepare(bundle, directory, attune, paths, device, flags, dry_run):
    """[(entry, job file or None)] of some paths, from a daemon of their own: none waits for another's compiler."""
    directory.mkdir()
    prepared = []
    with Daemon(bundle, directory, KERNELS, flags) as daemon, attune.Client(daemon.address) as client:
        for number, path in enumerate(paths):
            entry, file = entry_of(client, path, device), None
            if "variant" in entry and not dry_run:
                file = directory / f"{number}.json"
                try:
                    trial = jobs.evaluated(daemon, client, path.problem, entry["variant"], file)
                    entry["verdict"] = trial.verdict.name
                    if not file.exists():
                        entry["failed"], file = f"{trial.verdict.name}: {trial.detail}", None
                except attune.AttuneError as error:
                    entry["failed"], file = str(error), None
            prepared.append((entry, file))
        found = [each for each in client.devices() if each.id == "cuda:0"]
    return prepared, found


def prepare_all(bundle, scratch, attune, paths, arguments):
    """As `prepare`, on several daemons at once, in the order of `paths`; and the device."""
    count = min(arguments.daemons, len(paths))
    flags = ([f"--emulate={arguments.emulate}"] if arguments.emulate else []) + [
        "--idle_release=1s",
        "--compile_workers=4",
    ]

    def work(index):
        mine = paths[index::count]
        return prepare(bundle, scratch / f"{index}", attune, mine, arguments.device, flags, arguments.dry_run)

    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        results = list(pool.map(work, range(count)))
    prepared = [None] * len(paths)
    for index, (mine, _) in enumerate(results):
        prepared[index::count] = mine
    return prepared, results[0][1]


def watch_all(prepared, at_once):
    """Runs every job under every tool. Adds to its entry what each tool counted, and of failures the text."""
    pool = concurrent.futures.ThreadPoolExecutor(at_once)
    waiting = []
    for entry, file in prepared:
        for tool in sanitizer.TOOLS if file else ():
            command = [sys.executable, str(LAUNCH), str(file)]
            waiting.append((entry, tool, pool.submit(sanitizer.watch, tool, command)))
    for entry, tool, future in waiting:
        report = future.result()
        entry.setdefault("tools", {})[tool] = report.errors
        if report.errors != 0:
            entry.setdefault("reports", {})[tool] = report.text
    pool.shutdown()


def judge(entries):
    """What is wrong: a path that failed, an error in one, or a seeded defect that its tool does not report."""
    for entry in entries:
        name = f"{entry['family']}: {entry['path']}"
        if "failed" in entry:
            yield f"{name}: {entry['failed']}"
        bad = entry["path"].partition("planted ")[2]
        wanted = code_paths.PLANTED.get(int(bad)) if bad.isdecimal() else None
        if not bad and "verdict" in entry and entry["verdict"] != entry.get("expected", "OK"):
            yield f"{name}: the daemon's verdict is {entry['verdict']}"
        for tool, errors in entry.get("tools", {}).items():
            if wanted == tool:
                if not errors:
                    yield f"{name}: {tool} does not report it"
            elif wanted is None and errors != 0:
                found = "comes to no result" if errors is None else f"reports {errors}"
                yield f"{name}: {tool} {found}: {entry['reports'][tool][:600]}"


def show(entry):
    counted = " ".join(f"{tool}={'-' if errors is None else errors}" for tool, errors in entry.get("tools", {}).items())
    why = entry.get("failed") or entry["variant"]
    print(f"{entry['family']:15} {entry['path']:42} {counted or '':50} {why}", flush=True)


@contextlib.contextmanager
def timed(what):
    start = time.monotonic()
    yield
    print(f"== {what}: {time.monotonic() - start:.0f} s", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bundle", type=pathlib.Path, default=ROOT / "bundle")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--only", default="", help="paths whose family or name has this in it")
    parser.add_argument("--emulate", default="", help="run under this device profile's limits: l4 is compute_89 PTX")
    parser.add_argument("--daemons", type=int, default=6, help="that prepare variants at once")
    parser.add_argument("--at-once", type=int, default=8, help="runs under a tool at once")
    parser.add_argument("--device", default="", help="with --dry-run: choose variants for this device or profile:NAME")
    parser.add_argument("--dry-run", action="store_true", help="choose variants, run nothing")
    arguments = parser.parse_args()
    if not arguments.dry_run and not sanitizer.EXECUTABLE:
        sys.exit("sanitize.py: there is no compute-sanitizer in PATH or /usr/local/cuda/bin; the CUDA toolkit has it")
    bundle = arguments.bundle.resolve()
    attune = import_client(bundle)
    paths = [path for path in code_paths.ALL if arguments.only in f"{path.family} {path.name}"] + planted_paths()
    arguments.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="attune-sanitize-") as directory:
        with timed(f"{len(paths)} variants prepared"):
            prepared, device = prepare_all(bundle, pathlib.Path(directory), attune, paths, arguments)
        with timed(f"{len(sanitizer.TOOLS)} tools"):
            watch_all(prepared, arguments.at_once)
    entries = [entry for entry, _ in prepared]
    for entry in entries:
        show(entry)
    failures = list(judge(entries))
    report = {
        "command": "tests/gpu/sanitize.py" + (f" --emulate={arguments.emulate}" if arguments.emulate else ""),
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "sources": evidence.source_hashes(evidence.SANITIZED),
        "compute_sanitizer": "" if arguments.dry_run else sanitizer.version(),
        "device": [{"model": each.model, "driver": each.driver, "target": each.target} for each in device],
        "paths": entries,
        "failures": failures,
    }
    if not arguments.dry_run:
        whole = not arguments.only and not arguments.emulate
        (arguments.out / ("sanitize.json" if whole else "sanitize-part.json")).write_text(
            json.dumps(report, indent=1) + "\n"
        )
    for failure in failures:
        print(f"FAILED {failure}")
    kinds = collections.Counter("failed" if "failed" in entry else "run" for entry in entries)
    print(f"{dict(kinds)}, {len(failures)} failures")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
