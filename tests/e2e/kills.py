#!/usr/bin/env python3
"""kill -9 of the daemon or of one of its workers, again and again, at random moments under load.

  kills.py [--kills N] [--seed S] [--store DIRECTORY] [--check-every N] [--minutes M]

Jobs tune a few small problems, one after the other, while somebody records baselines and lists what has been measured.
At each of N moments the daemon (one time in two) or one of its workers is killed. What must come out: every trial that
was listed, every job and baseline that was accepted and every incumbent that was served is there after each start; the
database passes integrity_check (after every --check-every kills of the daemon, and at the end); no job fails; none of
their variants has a verdict but OK (LOST apart); and the first right answer comes within a second of the start of the
process.

--store: a data directory to work in, such as one that tests/load/fill_store has filled with a million trials; without
it an empty one. --minutes: no more kills after so many. Environment: ATTUNE_BUILD as for every test here. kill_test.py
and chaos_test.py are the short versions.
"""

import argparse
import json
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

from chaos_workers import Workers
from harness import KERNELS, TEST_FAMILIES, Daemon, wait_until

PROBLEMS = ("b1.h1.q16.d32.f16", "b1.h1.q32.d32.f16", "b1.h2.q16.d32.f16")
FAMILY = "slowable_opencl"  # two variants that take no time
OF_BASELINES = "b1.h1.q48.d32.f16"
FIRST_ANSWER = 1.0  # seconds


class Kills:
    def __init__(self, directory, store, seed, check_every):
        self.daemon = Daemon(directory, kernels=(KERNELS, TEST_FAMILIES))
        if store:
            self.daemon.data = pathlib.Path(store)
        self.random = random.Random(seed)
        self.check_every = check_every
        self.faults = []
        self.killed = {"daemon": 0, "compile": 0, "device": 0, "probe": 0}
        self.first_answers = []
        self.checks = 0
        self.trials = {problem: set() for problem in PROBLEMS}
        self.jobs = []  # accepted, in order
        self.baselines = set()  # contenders whose time was accepted

    def fault(self, words):
        self.faults.append(words)
        print(f"FAULT after {sum(self.killed.values())} kills: {words}", flush=True)

    def begin(self):
        self.daemon.start()
        for problem in PROBLEMS:
            self.daemon.attune("tune", problem, "--family", FAMILY)

    def ask(self, over):
        """Collects what the daemon says that it has, while it lives."""
        while not over.is_set():
            contender = f"kills-{self.random.randrange(1 << 60)}"
            record = ("--timeout=5s", "baseline", OF_BASELINES, contender, "1.5")
            if self.daemon.attune(*record, check=False).returncode == 0:
                self.baselines.add(contender)
            problem = self.random.choice(PROBLEMS)
            newest = ("--format=json", "--timeout=5s", "trials", problem, "--limit", "20")
            listed = self.daemon.attune(*newest, check=False)
            if listed.returncode == 0:
                self.trials[problem].update(json.loads(line)["trial"] for line in listed.stdout.splitlines())

    def keep_busy(self):
        """Has some jobs run, if the daemon takes them at this moment."""
        listed = self.daemon.attune("--format=json", "--timeout=5s", "jobs", "--active", check=False)
        if listed.returncode != 0:
            return
        for problem in PROBLEMS[: len(PROBLEMS) - len(listed.stdout.splitlines())]:
            tune = ("--format=json", "--timeout=5s", "tune", problem, "--family", FAMILY, "--retry-known", "--detach")
            job = self.daemon.attune(*tune, check=False)
            if job.returncode == 0:
                self.jobs.append(json.loads(job.stdout)["operation"])

    def run(self, kills, minutes):
        self.begin()
        end = time.monotonic() + 60 * minutes
        while sum(self.killed.values()) < kills and time.monotonic() < end:
            over = threading.Event()
            asking = threading.Thread(target=self.ask, args=(over,))
            asking.start()
            try:
                self.kill_workers_and_then_the_daemon(kills)
            finally:
                over.set()
                asking.join()
            self.after_a_kill()
        self.finish()

    def kill_workers_and_then_the_daemon(self, kills):
        workers = Workers(self.daemon)
        while True:
            self.keep_busy()
            time.sleep(self.random.uniform(0, 1.5))
            running = workers.running()
            if sum(self.killed.values()) + 1 >= kills or not running or self.random.random() < 0.5:
                break
            pid, role = self.random.choice(running)
            if subprocess.run(["kill", "-9", str(pid)], capture_output=True).returncode == 0:
                self.killed[role] += 1
        self.daemon.kill()
        self.killed["daemon"] += 1

    def after_a_kill(self):
        whole = self.killed["daemon"] % self.check_every == 0
        if whole:
            self.check_integrity()
        start = time.monotonic()
        self.daemon.start(until=" answering from the store while the host is probed ")
        problem = self.random.choice(PROBLEMS)
        answer = self.daemon.json("best", problem)[0]
        self.first_answers.append(time.monotonic() - start)
        if answer["provenance"] not in ("EXACT", "TIE"):
            self.fault(f"{problem}: {answer['provenance']} is served")
        self.check_trials()
        if whole:
            self.check_baselines()

    def check_integrity(self):
        # The daemon is down: nobody else has the file open.
        check = ["sqlite3", "-readonly", str(self.daemon.data / "attune.db"), "PRAGMA integrity_check"]
        result = subprocess.run(check, capture_output=True, text=True)
        self.checks += 1
        if result.stdout.strip() != "ok":
            self.fault(f"integrity_check: {result.stdout}{result.stderr}")

    def check_trials(self):
        for problem in PROBLEMS:
            stored = {trial["trial"]: trial["verdict"] for trial in self.daemon.trials(problem)}
            lost = self.trials[problem] - set(stored)
            if lost:
                self.fault(f"{problem}: lost {sorted(lost)}")
            bad = {trial: verdict for trial, verdict in stored.items() if verdict not in ("OK", "LOST")}
            if bad:
                self.fault(f"{problem}: {bad}")

    def check_baselines(self):
        stored = {baseline["contender"] for baseline in self.daemon.json("baseline", OF_BASELINES)}
        if lost := self.baselines - stored:
            self.fault(f"lost {len(lost)} baselines: {sorted(lost)[:5]}")

    def finish(self):
        wait_until("the daemon to serve", lambda: " serving " in self.daemon.log)
        wait_until("the jobs to end", lambda: not self.daemon.json("jobs", "--active"))
        states = {job["operation"]: job for job in self.daemon.json("jobs", "--limit", "0")}
        for name in set(self.jobs):
            if name not in states:
                self.fault(f"{name} is lost")
            elif states[name]["state"] != "SUCCEEDED":
                self.fault(f"{name}: {states[name]['state']} {states[name]['error']}")
        self.check_trials()
        self.check_baselines()
        self.daemon.stop()
        self.check_integrity()
        late = [took for took in self.first_answers if took >= FIRST_ANSWER]
        if late:
            self.fault(f"{len(late)} first answers took {FIRST_ANSWER} s or longer, at most {max(late):.2f} s")

    def summary(self):
        kills = ", ".join(f"{count} {role}" for role, count in self.killed.items())
        answers = sorted(self.first_answers) or [0]
        return (
            f"{sum(self.killed.values())} kills ({kills}); {len(set(self.jobs))} jobs, "
            f"{sum(len(trials) for trials in self.trials.values())} trials seen, {len(self.baselines)} baselines; "
            f"{self.checks} integrity checks; "
            f"first answer median {answers[len(answers) // 2]:.3f} s, 99 % {answers[len(answers) * 99 // 100]:.3f} s, "
            f"longest {answers[-1]:.3f} s; {len(self.faults)} faults"
        )

    def close(self):
        if self.daemon.process is not None and self.daemon.process.poll() is None:
            self.daemon.kill()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--store", help="a data directory to work in; default: an empty one")
    parser.add_argument("--check-every", type=int, default=50, help="kills of the daemon; default 50")
    parser.add_argument("--minutes", type=float, default=24 * 60)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="attune-kills-") as directory:
        kills = Kills(directory, options.store, options.seed, options.check_every)
        try:
            kills.run(options.kills, options.minutes)
        finally:
            kills.close()
            print(kills.summary(), flush=True)
    return 1 if kills.faults else 0


if __name__ == "__main__":
    sys.exit(main())
