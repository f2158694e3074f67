#!/usr/bin/env python3
"""What the daemon makes of a second process that loads the GPU, on a GPU host, from a bundle (deploy/bundle); torch or
CuPy is the host's. An estimate: 2 minutes.

    python3 tests/gpu/contended.py --bundle BUNDLE --out OUT [--seconds S]

While another process multiplies matrices (load.py), a problem that nobody has tuned and one that has an incumbent are
tuned, and a variant is evaluated: every time must be contended, nothing may be promoted, what is served and its time
must stay, and the jobs must say why. When the load has ended the same tuning must promote. Beside a load that pauses,
what is promoted must not be contended, and its time must be that of a quiet GPU.

Writes OUT/contended.json and .md. Ends with 1 where something does not hold; with 3 when the time was up before the
end: no step begins after --seconds.
"""

import argparse
import contextlib
import json
import os
import pathlib
import select
import shlex
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import problem_report
import tuning
from tuning import INCOMPLETE, summary

PROBLEMS = ["b2.h8.q512.d64.f16.causal", "b2.h8.q768.d64.f16", "b2.h8.q640.d64.f16", "b1.h3.q96.d64.f16"]
SEARCH = ["--strategy=random", "--seed=1", "--max-trials=12"]
NOTICED_S = 60  # within which the daemon sees a load, or that it has ended
LOADED_S = 120  # within which a load computes: importing torch takes its time
STEADY = ["--busy=0.2"]
PAUSING = ["--busy=0.3", "--idle=0.3"]
QUIET = 0.05  # a time beside a pausing load may be off by so much
# What must stay of an answer.
ANSWER = (
    "provenance",
    "variant",
    "latency_ms",
    "latency_low_ms",
    "latency_high_ms",
    "contended",
    "trial",
    "promote_time",
)
REASON = "another process was on the device"


@contextlib.contextmanager
def loaded(command):
    """A load runs in the block; it has printed "busy" by then."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        ready, _, _ = select.select([process.stdout], [], [], LOADED_S)
        if not ready or process.stdout.readline().strip() != "busy":
            sys.exit(f"{shlex.join(command)} does not compute within {LOADED_S} s")
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # its own group: a shell's children end, too
        process.wait()
        process.stdout.close()


class Trials:
    """What is asked of one daemon, and what came of it."""

    def __init__(self, setup, daemon, problems):
        self.setup, self.daemon = setup, daemon
        self.incumbent, self.fresh, self.pausing, self.probe = problems
        self.checks, self.steps = [], []

    def check(self, holds, what):
        print("ok    " if holds else "FAILED", what, flush=True)
        self.checks.append({"holds": bool(holds), "what": what})

    def tune(self, problem, *arguments):
        tuned = self.setup.tune(self.daemon, problem, *SEARCH, *arguments)
        operation = (tuned["result"] or {}).get("operation")
        trials = self.setup.ask(self.daemon, "trials", problem, "--job", operation, "--limit=0")[0] if operation else []
        timed = [trial["contended"] for trial in trials if trial["verdict"] == "OK" and trial["latency_ms"]]
        step = {
            "problem": problem,
            "operation": operation,
            **summary(tuned),
            "timed": len(timed),
            "contended": sum(timed),
        }
        self.steps.append(step)
        return step

    def best(self, problem):
        lines, _ = self.setup.ask(self.daemon, "best", problem)
        answer = lines[0] if lines and lines[0]["type"] == "answer" else {}
        return {key: answer.get(key) for key in ANSWER}

    def history(self, problem):
        return self.setup.ask(self.daemon, "history", problem)[0]

    def notices(self, contended):
        """Checks that timings are soon contended, or soon no longer."""
        begun, words = time.monotonic(), "beside the load" if contended else "alone"
        while time.monotonic() < begun + NOTICED_S:
            tuned = self.setup.tune(self.daemon, self.probe, "--strategy=random", "--max-trials=2", "--retry-known")
            timed = [trial["contended"] for trial in (tuned["result"] or {}).get("play_off", [])]
            if timed and any(timed) == contended:
                self.check(True, f"after {time.monotonic() - begun:.1f} s the daemon knows that it times {words}")
                return
        self.check(False, f"within {NOTICED_S} s the daemon knows that it times {words}")


def quiet_before(trials, _):
    step = trials.tune(trials.incumbent)
    trials.check(step["promoted"], f"alone, {trials.incumbent} is promoted: {step['decision']}")
    trials.check(step["timed"] and not step["contended"], f"none of {step['timed']} times is contended")


def a_problem_that_nobody_tuned(trials, _):
    step = trials.tune(trials.fresh)
    trials.check(step["promoted"] is False, f"beside the load, nothing of {trials.fresh} is promoted")
    all_contended(trials, step)
    says_so(trials, step)
    provenance = trials.best(trials.fresh)["provenance"]
    trials.check(provenance not in ("EXACT", "TIE"), f"{trials.fresh} has no answer of its own: {provenance}")
    trials.check(trials.history(trials.fresh) == [], f"{trials.fresh} has no history")


def one_that_has_an_incumbent(trials, _):
    before, history = trials.best(trials.incumbent), trials.history(trials.incumbent)
    step = trials.tune(trials.incumbent, "--retry-known")
    trials.check(
        step["promoted"] is False, f"beside the load, nothing takes the place of {trials.incumbent}'s incumbent"
    )
    all_contended(trials, step)
    says_so(trials, step)
    evaluated(trials)
    trials.check(trials.best(trials.incumbent) == before, "the answer is the same, its time too")
    trials.check(trials.history(trials.incumbent) == history, "so is the history")


def evaluated(trials):
    tried = trials.setup.ask(trials.daemon, "trials", trials.incumbent, "--verdict=OK", "--limit=0")[0]
    incumbent = trials.best(trials.incumbent)["variant"]
    others = [trial["variant"] for trial in tried if trial["variant"] != incumbent]
    if not others:
        trials.check(False, "there is another variant to evaluate")
        return
    lines, error = trials.setup.ask(trials.daemon, "--quiet", "evaluate", trials.incumbent, others[0])
    reason = lines[-1].get("reason") if lines else error
    trials.check(lines and lines[-1].get("decision") == "REVERT" and REASON in (reason or ""), f"evaluate: {reason}")


def all_contended(trials, step):
    what = f"{step['contended']} of {step['timed']} times are contended"
    trials.check(step["timed"] and step["contended"] == step["timed"], what)


def says_so(trials, step):
    trials.check(REASON in (step["decision"] or ""), f"the JSON says so: {step['decision'] or step['error']}")
    text = " ".join(trials.setup.text(trials.daemon, "watch", step["operation"]).split())
    trials.check(f"not promoted: {step['decision']}" in text, "so does the text")


def quiet_after(trials, _):
    trials.notices(False)
    step = trials.tune(trials.fresh)
    trials.check(step["promoted"], f"after the load, {trials.fresh} is promoted: {step['decision']}")
    trials.check(step["timed"] and not step["contended"], f"what was contended is tried again: {step['timed']} times")
    step = trials.tune(trials.incumbent, "--retry-known")
    trials.check(step["decision"] and REASON not in step["decision"], f"{trials.incumbent}: {step['decision']}")


def beside_a_load_that_pauses(trials, load):
    with loaded([*load, *PAUSING]):
        trials.notices(True)
        step = trials.tune(trials.pausing)
    answer = trials.best(trials.pausing)
    words = f"{step['contended']} of {step['timed']} times are contended: {step['decision'] or step['error']}"
    trials.check(step["timed"], f"beside a load that pauses, {words}")
    trials.notices(False)
    if not step["promoted"]:
        return
    trials.check(not answer["contended"], "what was promoted is not contended")
    again, error = trials.setup.ask(trials.daemon, "--quiet", "evaluate", trials.pausing, answer["variant"])
    quiet_ms = again[-1]["trial"]["latency_ms"] if again and again[-1]["type"] == "evaluation" else None
    if quiet_ms is None:
        trials.check(False, f"what was promoted can be timed again: {error}")
        return
    off = answer["latency_ms"] / quiet_ms - 1
    trials.check(abs(off) <= QUIET, f"the time that it was promoted with is a quiet GPU's: {100 * off:+.1f} %")


def beside_a_steady_load(trials, load):
    with loaded([*load, *STEADY]):
        trials.notices(True)
        a_problem_that_nobody_tuned(trials, load)
        one_that_has_an_incumbent(trials, load)


STEPS = [quiet_before, beside_a_steady_load, quiet_after, beside_a_load_that_pauses]


def markdown(report):
    yield f"# Beside a second process: {report['device'].get('model', '')}, {report['date'][:10]}\n"
    yield f"Driver {report['device'].get('driver', '')}. Command: `{report['command']}`\n"
    yield from (
        f"- {'holds' if check['holds'] else '**does not hold**'}: {check['what']}" for check in report["checks"]
    )
    yield "\n| problem | promoted | times | contended | decision |"
    yield "|---|---|---|---|---|"
    for step in report["steps"]:
        promoted = {True: "yes", False: "no", None: ""}[step["promoted"]]
        decision = (step["decision"] or step["error"] or "").replace("\n", " ")
        yield f"| {step['problem']} | {promoted} | {step['timed']} | {step['contended']} | {decision} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tuning.add_options(parser)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--load", metavar="COMMAND", help='a program that computes beside the daemon and prints "busy" '
                        "when it does; default: load.py, with --busy and --idle")  # fmt: skip
    parser.add_argument("--problem", nargs=4, default=PROBLEMS, metavar=("INCUMBENT", "FRESH", "PAUSING", "PROBE"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    setup = tuning.setup_of(options)
    own = [sys.executable, str(pathlib.Path(__file__).resolve().with_name("load.py"))]
    load, end = shlex.split(options.load) if options.load else own, time.monotonic() + options.seconds
    report = {"date": problem_report.now(), "command": shlex.join(sys.argv), "left_out": []}
    folder = tempfile.TemporaryDirectory(prefix="attune-contended-")
    with folder as directory, setup.daemon(pathlib.Path(directory)) as daemon:
        report["device"] = setup.facts(daemon)
        trials = Trials(setup, daemon, options.problem)
        report |= {"checks": trials.checks, "steps": trials.steps}
        for step in STEPS:
            if time.monotonic() > end:
                report["left_out"].append(step.__name__)
                continue
            print(f"== {step.__name__.replace('_', ' ')}", flush=True)
            step(trials, load)
            write(options.out, report)
    write(options.out, report)
    failed = [check["what"] for check in trials.checks if not check["holds"]]
    print("\n".join(f"does not hold: {what}" for what in failed))
    if report["left_out"]:
        print(f"the time was up; left out: {', '.join(report['left_out'])}")
    return 1 if failed else INCOMPLETE if report["left_out"] else 0


def write(out, report):
    (out / "contended.json").write_text(json.dumps(report, indent=1) + "\n")
    (out / "contended.md").write_text("\n".join(markdown(report)) + "\n")


if __name__ == "__main__":
    sys.exit(main())
