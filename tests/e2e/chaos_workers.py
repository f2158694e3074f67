#!/usr/bin/env python3
"""Kills, stops and continues worker processes at random moments of tuning and sweeping.

  chaos_workers.py [--moments N] [--seed S] [--recovery SECONDS] [--problems N]

First the jobs run undisturbed. Then they run again and again on a daemon of their own, and at each of N moments one of
its workers, device or compile, is struck. What must come out: no job fails; every variant has the verdict that it has
undisturbed, which is OK; and the struck worker is gone and what it did is done by another within the recovery time.
That is beside what a worker or the daemon waited for a core meanwhile: a busy machine makes nothing slow to recover.
Only then comes the next moment: what ends ten fresh workers in a row is rightly blamed for it.

Environment: ATTUNE_BUILD is the build directory, as for every test here. `ChaosTest` is the short version.
"""

import argparse
import contextlib
import itertools
import json
import os
import pathlib
import random
import signal
import sys
import tempfile
import threading
import time

from harness import Daemon, wait_until

PROBLEMS = ("b1.h1.q16.d32.f16", "b1.h1.q32.d32.f16.causal", "b1.h2.q16.d64.f16")

PLAN = """
title: "chaos"
shapes {{ {shapes} }}
budget {{ trials_per_problem: 5 }}
"""

# How a worker is struck, by name: the signals, in order, with pauses of up to so many seconds before them.
STRIKES = {
    "kill": [(signal.SIGKILL, 0)],
    "terminate": [(signal.SIGTERM, 0)],
    "stop": [(signal.SIGSTOP, 0)],
    "stop and continue": [(signal.SIGSTOP, 0), (signal.SIGCONT, 0.1)],
    "stop and kill": [(signal.SIGSTOP, 0), (signal.SIGKILL, 0.1)],
}


class Workers:
    """The worker processes of a daemon, as the system sees them."""

    def __init__(self, daemon):
        self.daemon = daemon

    def running(self):
        """(pid, role) of each, zombies left out."""
        return [(pid, role) for pid, role, state in self._children() if role and state != "Z"]

    def zombies(self):
        return [pid for pid, _, state in self._children() if state == "Z"]

    def _children(self):
        for directory in pathlib.Path("/proc").iterdir():
            if not directory.name.isdigit():
                continue
            try:
                state, parent = (directory / "stat").read_text().rpartition(")")[2].split()[:2]
                if int(parent) != self.daemon.process.pid:
                    continue
                words = (directory / "cmdline").read_bytes().split(b"\0")
            except (FileNotFoundError, ProcessLookupError):
                continue
            role = next((w.decode()[7:] for w in words if w.startswith(b"--role=")), "")
            yield int(directory.name), role, state


class WaitsForCores:
    """How long processes of a daemon wait for a core, from now on."""

    def __init__(self, workers):
        self.workers = workers
        self.before = self._delays()
        self.seen = {}

    def look(self):
        """What a process waited that ends is known up to the last look."""
        self.seen.update(self._delays())

    def longest(self):
        """Of the thread that waited longest, in seconds."""
        self.look()
        return max((delay - self.before.get(task, 0) for task, delay in self.seen.items()), default=0)

    def _delays(self):
        delays = {}
        for pid in [self.workers.daemon.process.pid] + [pid for pid, _ in self.workers.running()]:
            for task in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat"):
                with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                    delays[str(task)] = int(task.read_text().split()[1]) / 1e9
        return delays


class Job:
    """A job and how far it has come, from the stream of `attune watch`."""

    def __init__(self, daemon, *arguments):
        self.name = daemon.json(*arguments, "--detach")[0]["operation"]
        self._state = {}
        self._changed = threading.Condition()
        self._done = False
        self._watch = daemon.popen("--format=json", "watch", self.name)
        self.output = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        with self._watch.stdout as lines:
            for line in lines:
                self.output.append(line)
                with self._changed:
                    self._state = json.loads(line) if line.startswith("{") else {}
                    self._changed.notify_all()
        self._watch.wait()
        with self._changed:
            self._done = True
            self._changed.notify_all()

    def state(self):
        with self._changed:
            return self._state

    def done(self):
        with self._changed:
            return self._done

    def await_end(self, seconds):
        """Whether it ended within that time."""
        with self._changed:
            return self._changed.wait_for(lambda: self._done, seconds)

    def await_recovery(self, role, before, seconds, waits):
        """Whether what a worker of this role did in the state `before` was done within that time; looks at `waits`."""

        def recovered():
            now = self._state
            if self._done or any(now.get(key) != before.get(key) for key in ("type", "phase", "message")):
                return True
            trials = now["trials_done"] - before["trials_done"]
            # One compile worker: of two trials one was compiled after the strike, if anything was.
            return trials > 0 if role == "device" else trials > 1 or now["compiles_done"] > before["compiles_done"]

        end = time.monotonic() + seconds
        while time.monotonic() < end:
            waits.look()
            with self._changed:
                if self._changed.wait_for(recovered, 1):
                    return True
        return False


class Chaos:
    def __init__(self, directory, seed, recovery, problems=PROBLEMS):
        self.directory = pathlib.Path(directory)
        self.random = random.Random(seed)
        self.recovery = recovery
        self.problems = problems
        self.faults = []
        self.recoveries = []
        self.struck = {}
        self.daemons = []

    def jobs(self, plan):
        """The arguments of one job after the other, for ever."""
        for problem in itertools.cycle(self.problems):
            yield ("sweep", str(plan))
            yield ("tune", problem, "--strategy=random", "--max-trials=6", "--seed=3", "--retry-known")

    def daemon(self, name):
        directory = self.directory / name
        directory.mkdir()
        plan = directory / "plan.textproto"
        plan.write_text(PLAN.format(shapes=" ".join(f'problem: "{problem}"' for problem in self.problems)))
        self.daemons.append(Daemon(directory, flags=["--compile_workers=1"]))
        return self.daemons[-1], plan

    def close(self):
        """Ends the daemons that a failure has left running."""
        for daemon in self.daemons:
            if daemon.process is not None and daemon.process.poll() is None:
                daemon.kill()

    def undisturbed(self):
        """The verdict of each variant of each problem."""
        daemon, plan = self.daemon("undisturbed")
        daemon.start()
        for arguments in itertools.islice(self.jobs(plan), 2 * len(self.problems)):
            result = daemon.attune(*arguments, check=False)
            # 5: a time differs from an earlier one. Verdicts are what counts here.
            if result.returncode not in (0, 5):
                self.faults.append(f"undisturbed: {' '.join(arguments)}: exit {result.returncode}: {result.stderr}")
        verdicts = self.verdicts(daemon)
        daemon.stop()
        return verdicts

    def verdicts(self, daemon):
        verdicts = {}
        for problem in self.problems:
            for trial in daemon.trials(problem):
                verdicts.setdefault((problem, trial["variant"]), set()).add(trial["verdict"])
        return verdicts

    def disturbed(self, moments):
        daemon, plan = self.daemon("disturbed")
        daemon.start()
        workers = Workers(daemon)
        left = moments
        for arguments in self.jobs(plan):
            if left == 0:
                break
            job = Job(daemon, *arguments)
            while left > 0 and not job.done():
                # The moment is random; what follows waits for events.
                time.sleep(self.random.uniform(0, 1.5))
                if self.strike(workers, job):
                    left -= 1
            if not job.await_end(10 * self.recovery):
                self.faults.append(f"{' '.join(arguments)}: hangs")
                break
            self.check_job(daemon, job)
        verdicts = self.verdicts(daemon)
        wait_until("the dead workers to be reaped", lambda: not workers.zombies(), self.recovery)
        daemon.stop()
        return verdicts

    def strike(self, workers, job):
        """False when there was nobody to strike, or no job to disturb."""
        running = workers.running()
        before = job.state()
        if not running or "trials_done" not in before or job.done():
            return False
        pid, role = self.random.choice(running)
        name = self.random.choice(sorted(STRIKES))
        begin = time.monotonic()
        waits = WaitsForCores(workers)
        try:
            for number, pause in STRIKES[name]:
                time.sleep(self.random.uniform(0, pause))
                os.kill(pid, number)
        except ProcessLookupError:
            if number == STRIKES[name][0][0]:
                return False  # gone before it was struck
        hangs = 10 * self.recovery
        if not job.await_recovery(role, before, hangs, waits):
            self.faults.append(f"not recovered in {hangs} s after: {name}, {role} worker")

        def gone():
            return pid not in [p for p, _ in workers.running()] + workers.zombies()

        try:
            wait_until("the struck worker to be gone", gone, max(0.1, hangs - (time.monotonic() - begin)))
        except AssertionError:
            self.faults.append(f"still there after {hangs} s: {name}, {role} worker")
        took = time.monotonic() - begin
        beside_waits = max(0.0, took - waits.longest())
        if beside_waits > self.recovery:
            self.faults.append(f"{beside_waits:.1f} s until recovered from: {name}, {role} worker")
        self.recoveries.append((took, beside_waits))
        self.struck[f"{name}, {role}"] = self.struck.get(f"{name}, {role}", 0) + 1
        return True

    def check_job(self, daemon, job):
        state = next(j for j in daemon.json("jobs", "--limit", "0") if j["operation"] == job.name)
        if state["state"] != "SUCCEEDED":
            self.faults.append(f"{state['title']}: {state['state']} {state['error']}")
        last = json.loads(job.output[-1])
        for row in last.get("rows", []):
            if row["outcome"] == "FAILED":
                self.faults.append(f"sweep row {row['problem']}: {row['detail']}")

    def run(self, moments):
        """The faults found."""
        expected = self.undisturbed()
        found = self.disturbed(moments)
        for verdicts, when in ((expected, "undisturbed"), (found, "disturbed")):
            for (problem, variant), those in sorted(verdicts.items()):
                if those != {"OK"}:
                    self.faults.append(f"{when}: {problem} {variant}: {', '.join(sorted(those))}")
        unknown = set(found) - set(expected)
        if unknown:
            self.faults.append(f"tried when disturbed alone: {sorted(unknown)}")
        return self.faults

    def summary(self):
        times = sorted(took for took, _ in self.recoveries)
        own = sorted(beside for _, beside in self.recoveries)
        lines = [f"{count:4} x {what}" for what, count in sorted(self.struck.items())]
        if times:
            lines.append(
                f"{len(times)} moments; recovery median {times[len(times) // 2]:.2f} s, "
                f"longest {times[-1]:.2f} s; beside waits for a core median {own[len(own) // 2]:.2f} s, "
                f"longest {own[-1]:.2f} s; {len(self.faults)} faults"
            )
        return "\n".join(lines + self.faults)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--moments", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--recovery", type=float, default=15, help="seconds; default 15")
    parser.add_argument("--problems", type=int, default=len(PROBLEMS), help="how many of its problems to use")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="attune-chaos-") as directory:
        chaos = Chaos(directory, options.seed, options.recovery, PROBLEMS[: options.problems])
        try:
            faults = chaos.run(options.moments)
        finally:
            chaos.close()
            print(chaos.summary(), flush=True)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
