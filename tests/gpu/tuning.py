"""Tunings as a client sees them, for scripts that start daemons of their own: the options that such scripts share, a
tuning's result with its wall time by phases, and a list of problems that ends with the time."""

import collections
import dataclasses
import json
import pathlib
import subprocess
import threading
import time

from daemon import ROOT, Daemon, ended, environment

COMMAND_S = 600  # what takes longer hangs
INCOMPLETE = 3  # exit status: the time was up before everything was measured


@dataclasses.dataclass(frozen=True)
class Setup:
    """Which daemon a script starts, and what it asks it for."""

    bundle: pathlib.Path
    kernels: list
    families: list
    device: str
    flags: list

    def daemon(self, directory, data=None):
        """A `with` block's daemon. `directory` gets its socket, log and locks and, without `data`, its database."""
        for path in (directory / "locks", data or directory / "data"):
            path.mkdir(parents=True, exist_ok=True)
        return Daemon(self.bundle, directory, self.kernels, self.flags, data)

    def command(self, daemon, *arguments, json_lines=True):
        options = [*(["--format=json"] if json_lines else []), *(["--device", self.device] if self.device else [])]
        return [str(part) for part in (self.bundle / "attune", "--server", daemon.address, *options, *arguments)]

    def ask(self, daemon, *arguments):
        """The objects that a command prints, whatever its exit status, and what it says of an error."""
        run = ended(self.command(daemon, *arguments), self.bundle, COMMAND_S)
        return [json.loads(line) for line in run.stdout.splitlines()], run.stderr.strip()[-1000:]

    def text(self, daemon, *arguments):
        """What a person reads, standard error included."""
        run = ended(self.command(daemon, *arguments, json_lines=False), self.bundle, COMMAND_S)
        return run.stdout + run.stderr

    def facts(self, daemon):
        """Of the device, for a report."""
        devices = [line for line in self.ask(daemon, "devices")[0] if line["type"] == "device"]
        keys = ("device", "model", "driver", "class")
        return {key: devices[0][key] for key in keys} if devices else {}

    def variants(self, daemon, problem):
        """How many variants a tuning without a strategy tries."""
        lines, error = self.ask(daemon, "space", problem, *self.family_options())
        if not lines or lines[0]["type"] != "preflight":
            raise RuntimeError(f"space {problem}: {error}")
        return sum(family["variants"] for family in lines[0]["families"] if family["feasible"])

    def family_options(self):
        return [f"--family={name}" for name in self.families]

    def tune(self, daemon, problem, *arguments):
        """{"seconds", "phases", "trials", "compiles", "verdicts", "result", "error"} of one tuning; `result` is its
        last line (docs/cli.md, "JSON lines"), None where it has failed."""
        command = self.command(daemon, "tune", problem, *self.family_options(), *arguments)
        return follow(command, environment(self.bundle))


def add_options(parser):
    """The options of which setup_of() makes a Setup."""
    parser.add_argument("--bundle", type=pathlib.Path, required=True, help="made by deploy/bundle")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--kernels", type=pathlib.Path, action="append", metavar="DIR", help="default: kernels_src")
    parser.add_argument(
        "--family", action="append", default=[], metavar="NAME", help="only this one; may be given again"
    )
    parser.add_argument("--device", default="", help="as `attune devices` lists it; default: the first")
    parser.add_argument("--daemon-flag", action="append", default=[], metavar="FLAG", help="handed to attuned")


def setup_of(options):
    kernels = options.kernels or [ROOT / "kernels_src"]
    return Setup(options.bundle.resolve(), kernels, options.family, options.device, options.daemon_flag)


def follow(command, variables, limit_s=COMMAND_S):
    """Runs a `tune` that prints JSON lines to its end."""
    begun = at = time.monotonic()
    phases, last, phase, result = collections.Counter(), {}, "connecting", None
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=variables)
    stop = threading.Timer(limit_s, process.kill)
    stop.start()
    try:
        for line in process.stdout:
            row = json.loads(line)
            now = time.monotonic()
            if row["type"] == "tuning":
                result = row
            if row["type"] != "progress":
                continue
            phases[phase] += now - at
            at, last = now, row
            phase = row["message"] or row["phase"] if row["phase"] == "reference" else row["phase"]
        error = process.stderr.read()
        process.wait()
    finally:
        stop.cancel()
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()
    phases[phase] += time.monotonic() - at
    return {
        "seconds": round(time.monotonic() - begun, 3),
        "phases": {name: round(taken, 3) for name, taken in phases.items() if taken >= 0.001},
        "trials": last.get("trials_done", 0) - last.get("trials_reused", 0),
        "compiles": last.get("compiles_done", 0),
        "verdicts": last.get("verdicts", {}),
        "result": result,
        "error": None if process.returncode == 0 else f"ended with {process.returncode}: {error.strip()[-500:]}",
    }


def served(tuned):
    """The variant that is served after a tuning, and its time in ms; ("", None) where nothing is."""
    incumbent = (tuned["result"] or {}).get("incumbent")
    return (incumbent["variant"], incumbent["latency_ms"]) if incumbent else ("", None)


def summary(tuned):
    """A tuning in a report: without the trials of its play-off."""
    variant, latency_ms = served(tuned)
    result = tuned["result"] or {}
    kept = {key: value for key, value in tuned.items() if key != "result"}
    told = {key: result.get(key) for key in ("promoted", "decision", "claim", "anchor_moved")}
    return {"variant": variant, "latency_ms": latency_ms, **kept, **told}


def while_time(items, seconds, clock=time.monotonic):
    """Those of `items` that there is time for: none is begun where the longest so far would not end in time."""
    end, longest = clock() + seconds, 0.0
    for item in items:
        begun = clock()
        if begun + longest > end:
            return
        yield item
        longest = max(longest, clock() - begun)
