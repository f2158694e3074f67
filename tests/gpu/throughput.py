#!/usr/bin/env python3
"""How fast the engine tunes: variants a second, what preparing costs, and where a job's time goes, on a GPU host, for
one bundle (deploy/bundle) or several side by side. About 10 minutes a bundle with all steps, from nothing.

    python3 tests/gpu/throughput.py --bundle before=DIR --bundle after=DIR --out OUT [STEP ...]

Every bundle tries the same variants. The first to come to a problem compiles them ("cold"); then each tries them again
with all code at hand ("warm"). --apart gives each bundle a database of its own, and so a cold run. --trials bounds the
large spaces, by a random draw that is the same for all. --seconds: no step begins later than that.

Writes OUT/throughput.json and .md: a job's wall time by its phases, as the daemon reports them; trials and verdicts,
which must be the same for all bundles (exit status 1 otherwise); how much of the time the driver saw a kernel on the
GPU (NVML's utilization, every 100 ms), which is not the daemon's own figure; and by how much, of the whole time, the
end that was foretold differed from the real one at most, from a fifth of the job on ("ETA off").
"""

import argparse
import collections
import dataclasses
import datetime
import json
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from daemon import ROOT, Daemon, environment, tool

DRAW = ["--strategy=random", "--seed=1"]


@dataclasses.dataclass
class Step:
    """A tuning, and what it may take: issue's seconds, cold and warm; 0: no aim."""

    name: str
    problem: str
    cold: float = 0
    warm: float = 0
    trials: int = 0  # 0: all, or --trials
    whole: bool = False  # all, whatever --trials says


STEPS = [
    Step("short", "b7.h12.q197.d64.f16", warm=5, whole=True),
    Step("two", "b2.h8.q512.d64.f16", warm=0.3, trials=2),
    Step("gigabyte", "b16.h32.kvh8.q1.kv16384.d128.f16", trials=2),
    Step("long", "b4.h16.q4096.d128.f16", warm=20),
    Step("causal", "b1.h32.kvh8.q2048.d128.f16.causal", cold=90, warm=25),
    Step("wide", "b1.h2.q7000.d256.f16"),
]


class Utilization:
    """Mean utilization of the first GPU, in per cent, while the `with` block runs; None where nvidia-smi is not."""

    def __enter__(self):
        self.mean, self.values = None, []
        command = ["nvidia-smi", "-i=0", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits", "-lms=100"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True) if tool("nvidia-smi") else None
        self.thread = threading.Thread(target=self.read)
        self.thread.start()
        return self

    def read(self):
        for line in self.process.stdout if self.process else ():
            if line.strip().isdigit():
                self.values.append(int(line))

    def __exit__(self, *exception):
        if self.process:
            self.process.terminate()
            self.process.wait()
        self.thread.join()
        self.mean = sum(self.values) / len(self.values) if self.values else None


def tune(daemon, step, family, trials, again):
    """One tuning, as the client sees it: its wall time by phases, trials and verdicts."""
    limit = step.trials or (0 if step.whole else trials)
    arguments = [f"--family={family}", *([*DRAW, f"--max-trials={limit}"] if limit else ["--strategy=exhaustive"])]
    command = [daemon.bundle / "attune", "--server", daemon.address, "--format=json", "tune", step.problem, *arguments]
    command += ["--retry-known"] if again else []
    begun = at = time.monotonic()
    phases, last, phase, foretold = collections.Counter(), {}, "connecting", []
    with Utilization() as utilization:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(daemon.bundle)
        )
        for line in process.stdout:
            row = json.loads(line)
            if row["type"] != "progress":
                continue
            now = time.monotonic()
            phases[phase] += now - at
            at, last = now, row
            if row["eta_s"] is not None:
                foretold.append((now - begun, row["eta_s"]))
            phase = row["message"] or row["phase"] if row["phase"] == "reference" else row["phase"]
        process.wait()
    phases[phase] += time.monotonic() - at
    seconds = time.monotonic() - begun
    tried = last.get("trials_done", 0) - last.get("trials_reused", 0)
    return {
        "seconds": round(seconds, 3),
        "phases": {name: round(taken, 3) for name, taken in phases.items() if taken >= 0.001},
        "trials": tried,
        "trials_per_s": round(tried / phases["trials"], 2) if phases["trials"] else None,
        "verdicts": last.get("verdicts", {}),
        "compiles": last.get("compiles_done", 0),
        "device_busy": last.get("device_busy"),
        "cost": last.get("cost"),
        "eta_off": eta_off(foretold, seconds),
        "utilization": utilization.mean and round(utilization.mean, 1),
        "error": process.stderr.read()[-500:] if process.returncode else None,
    }


def eta_off(foretold, seconds):
    """The largest error of an end foretold from a fifth of `seconds` on, in parts of them; None where none was."""
    late = [abs(at + left - seconds) / seconds for at, left in foretold if at >= seconds / 5]
    return round(max(late), 3) if late else None


def run(bundles, steps, options, scratch, end):
    """Rows of what has run, in order."""
    compiled = set()
    for step in steps:
        for name, bundle in bundles.items():
            data = scratch / (name if options.apart else "all")
            directory = scratch / f"{name}-{step.name}"
            for path in (data, directory / "locks"):
                path.mkdir(parents=True, exist_ok=True)
            with Daemon(bundle, directory, [options.kernels], data=data) as daemon:
                cold = (data, step.problem) not in compiled
                for kind in (["cold"] if cold else []) + ["warm"]:
                    if time.monotonic() > end:
                        print(f"{step.name} {kind} of {name}: left out, the time is up", flush=True)
                        continue
                    row = {"step": step.name, "problem": step.problem, "bundle": name, "kind": kind}
                    row |= tune(daemon, step, options.family, options.trials, again=kind == "warm")
                    compiled.add((data, step.problem))
                    print(json.dumps(row), flush=True)
                    yield row
            log = (directory / "attuned.log").read_text()
            for line in log.splitlines():
                if "on the host" in line or "the host compares" in line:
                    print(f"{name}: {line}", flush=True)


def disagreements(rows):
    """Where bundles have other verdicts on the same variants. Times that do not settle are the device's doing; what one
    gives up after a quick look another checks altogether."""
    found = collections.defaultdict(dict)
    for row in rows:
        verdicts = collections.Counter(row["verdicts"])
        verdicts["OK"] += verdicts.pop("UNSTABLE", 0) + verdicts.pop("SLOW", 0)
        found[row["step"]][f"{row['bundle']} {row['kind']}"] = dict(verdicts)
    texts = {step: {json.dumps(of, sort_keys=True) for of in runs.values()} for step, runs in found.items()}
    return [f"{step}: {runs}" for step, runs in found.items() if len(texts[step]) > 1]


def report(rows, heading):
    """Markdown."""
    aims = {(step.name, kind): getattr(step, kind) for step in STEPS for kind in ("cold", "warm")}
    columns = ["step", "problem", "bundle", "", "s", "aim", "trials", "SLOW", "a second", "GPU busy", "by NVML"]
    columns += ["ETA off", "where"]
    lines = [f"# {heading}", "", "| " + " | ".join(columns) + " |", "|---" * len(columns) + "|"]
    for row in rows:
        where = ", ".join(f"{name} {taken:.2f}" for name, taken in sorted(row["phases"].items(), key=lambda at: -at[1]))
        nvml = f"{row['utilization']:.0f} %" if row["utilization"] is not None else ""
        busy = f"{100 * row['device_busy']:.0f} %" if row["device_busy"] else ""
        aim = aims[row["step"], row["kind"]] or ""
        eta = f"{100 * row['eta_off']:.0f} %" if row["eta_off"] is not None else ""
        cells = [row["step"], row["problem"], row["bundle"], row["kind"], f"{row['seconds']:.2f}", aim, row["trials"]]
        cells += [row["verdicts"].get("SLOW", 0), row["trials_per_s"] or "", busy, nvml, eta, row["error"] or where]
        lines.append("| " + " | ".join(str(cell).replace("\n", " ") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bundle", action="append", required=True, metavar="NAME=DIR")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--kernels", type=pathlib.Path, default=ROOT / "kernels_src")
    parser.add_argument("--trials", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--apart", action="store_true")
    parser.add_argument("--family", default="attention_mma")
    names = ", ".join(step.name for step in STEPS)
    parser.add_argument("steps", nargs="*", metavar="STEP", help=f"of {names}; default all")
    options = parser.parse_args()
    unknown = set(options.steps) - {step.name for step in STEPS}
    if unknown:
        parser.error(f"STEP is {', '.join(sorted(unknown))}; allowed: {names}")
    bundles = {name: pathlib.Path(path).resolve() for name, _, path in (each.partition("=") for each in options.bundle)}
    steps = [step for step in STEPS if not options.steps or step.name in options.steps]
    options.out.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + options.seconds
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        for row in run(bundles, steps, options, pathlib.Path(scratch), end):
            rows.append(row)
            heading = f"Throughput, {datetime.date.today()}"
            (options.out / "throughput.json").write_text(json.dumps(rows, indent=1) + "\n")
            (options.out / "throughput.md").write_text(report(rows, heading))
    wrong = disagreements(rows)
    print("\n".join(f"other verdicts: {line}" for line in wrong))
    failed = any(row["error"] for row in rows)
    sys.exit(1 if wrong or failed else 0)


if __name__ == "__main__":
    main()
