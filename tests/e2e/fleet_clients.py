"""Clients of a fleet, that ask its gateways without a pause, and remember what they were answered."""

import concurrent.futures
import json
import pathlib
import random
import subprocess
import tempfile
import threading
import time
import traceback
import uuid

from harness import ATTUNE
from kills import PROBLEMS

DEVICE = ("--device", "pthread")  # the class of PoCL's devices
FAMILIES = ("attention_opencl", "slowable_opencl")  # the second has two variants, soon compiled
BRIEF = ("--timeout=5s", "--format=json")


class Watch:
    """`attune watch` of a job."""

    def __init__(self, gateway, job):
        self.job = job
        command = [ATTUNE, "--server", gateway.address, "--format=json", "watch", job]
        # A pipe would be full before anybody reads it.
        descriptor, self._output = tempfile.mkstemp(prefix="watch-", dir=gateway.directory)
        with open(descriptor, "w", encoding="utf-8") as output:
            self._process = subprocess.Popen(command, stdout=output, stderr=subprocess.DEVNULL)

    def ended(self, seconds=0):
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def told(self):
        """The end of the job, by its state; None where it was told of none, as when the gateway was killed."""
        lines = pathlib.Path(self._output).read_text(encoding="utf-8").splitlines()
        last = json.loads(lines[-1]) if lines else {"type": "nothing"}
        if last["type"] == "tuning":
            return "SUCCEEDED"
        return last["state"] if last.get("state") in ("CANCELLED", "FAILED") else None

    def close(self):
        self._process.kill()
        self._process.wait()
        pathlib.Path(self._output).unlink()


class Clients:
    """`trials`: of a tuning, at most: one of these. `unfinished`: jobs, from which on nothing is asked for."""

    def __init__(self, gateways, seed, trials=(3, 6, 12, 24), unfinished=4):
        self.gateways = gateways
        self.seed = seed
        self.trials = trials
        self.unfinished = unfinished
        self.accepted = {}  # jobs, in order
        self.pairs = []  # (request_id or None, the job of each gateway), of equal requests at once
        self.seen = {}  # (job, variant) of each trial that was listed, by its name
        self.watched = []  # (job, state) as watchers were told
        self.cancelled = 0
        self.faults = []  # what ended one of the threads
        self.asked = 0  # questions, and how many of them were not answered
        self.unanswered = 0
        self._over = threading.Event()
        self._threads = []
        self._to_cancel = []  # (when, job)
        self._watches = []

    def start(self):
        for number, work in enumerate((self._ask, self._cancel, self._list, self._watch)):
            rng = random.Random(f"{self.seed} {number}")
            thread = threading.Thread(target=self._again, args=(work, rng), daemon=True)
            thread.start()
            self._threads.append(thread)

    def stop(self):
        """No more questions; those under way are waited for."""
        self._over.set()
        for thread in self._threads:
            thread.join()

    def end_watches(self, seconds=30):
        """Once all jobs have ended: who watches one still is told so within seconds."""
        end = time.monotonic() + seconds
        for watch in list(self._watches):
            if watch.ended(max(0.0, end - time.monotonic())):
                self._watch_ended(watch)
            else:
                self.watched.append((watch.job, f"nothing, {seconds} s after the last had ended"))

    def close(self):
        self._over.set()
        for thread in self._threads:
            thread.join()
        for watch in self._watches:
            watch.close()

    def _again(self, work, rng):
        try:
            while not self._over.wait(rng.uniform(0.2, 1.0)):
                work(rng)
        except Exception:
            self.faults.append(f"a client ended: {traceback.format_exc()}")

    def _json(self, gateway, *arguments):
        """The lines of an answer; None where there was none."""
        self.asked += 1
        result = gateway.attune(*BRIEF, *arguments, check=False)
        if result.returncode != 0:
            self.unanswered += 1
            return None
        return [json.loads(line) for line in result.stdout.splitlines()]

    def _ask(self, rng):
        """One tuning of each gateway: the same."""
        active = self._json(rng.choice(self.gateways), "jobs", "--active")
        if active is None or len(active) >= self.unfinished:
            return
        request_id = f"chaos-{uuid.UUID(int=rng.getrandbits(128))}" if rng.random() < 0.5 else None
        tune = [
            *DEVICE,
            "tune",
            rng.choice(PROBLEMS),
            "--detach",
            "--strategy=random",
            f"--max-trials={rng.choice(self.trials)}",
        ]
        tune += [f"--family={rng.choice(FAMILIES)}", f"--seed={rng.randint(1, 1000)}"]
        if rng.random() < 0.8:
            tune.append("--retry-known")
        if request_id is not None:
            tune.append(f"--request-id={request_id}")
        with concurrent.futures.ThreadPoolExecutor(len(self.gateways)) as pool:
            names = list(pool.map(lambda gateway: self._tune(gateway, tune, request_id), self.gateways))
        names = [name for name in names if name is not None]
        self.accepted.update(dict.fromkeys(names))
        if len(names) > 1:
            self.pairs.append((request_id, names))
        if names and rng.random() < 0.2:
            self._to_cancel.append((time.monotonic() + rng.uniform(0, 10), names[0]))
        if names and rng.random() < 0.5:
            self._watches.append(Watch(rng.choice(self.gateways), names[0]))

    def _tune(self, gateway, tune, request_id):
        """The job. With a request_id it is asked for until it is answered; else that might be another job."""
        while True:
            answer = self._json(gateway, *tune)
            if answer is not None:
                return answer[0]["operation"]
            if request_id is None or self._over.wait(1):
                return None

    def _cancel(self, rng):
        for due, job in list(self._to_cancel):
            if time.monotonic() < due:
                continue
            if self._json(rng.choice(self.gateways), "cancel", job) is not None:
                self._to_cancel.remove((due, job))
                self.cancelled += 1

    def _list(self, rng):
        for trial in self._json(rng.choice(self.gateways), "trials", rng.choice(PROBLEMS), "--limit", "50") or ():
            self.seen[trial["trial"]] = (trial["job"], trial["variant"])

    def _watch(self, _):
        for watch in list(self._watches):
            if watch.ended():
                self._watch_ended(watch)

    def _watch_ended(self, watch):
        if (told := watch.told()) is not None:
            self.watched.append((watch.job, told))
        watch.close()
        self._watches.remove(watch)
