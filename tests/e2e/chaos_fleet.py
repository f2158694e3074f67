#!/usr/bin/env python3
"""Kills, stops and cuts off hosts of a fleet and its database at random moments, while clients ask for work.

  chaos_fleet.py [--events N] [--seed S] [--minutes M] [--hosts N] [--logs DIRECTORY]

Hosts with PoCL's devices and two gateways share a PostgreSQL server, each by way of a proxy. Clients have both gateways
tune the same at once, cancel, watch and list, while at each of N moments something happens to a host or the server.
Then all is healed, and once every job has ended the database is asked what must be true (fleet_invariants.py): every
job ended once, by its last lease; nothing is stuck; what is served is a chain, and the same from all; no trial that was
listed is lost, none is there twice; no job failed but those that three hosts were lost with, nor took longer to go on
elsewhere than its lease and 5 s while a host was free (takeovers.py). Hosts that came back after others had taken their
jobs must have been refused a write, connections dropped, and jobs done, else the run has proved nothing.

A fault ends in exit code 1, and the logs stay. --minutes: no more events after so many. Environment: ATTUNE_BUILD as
for every test here. `ChaosFleetTest` is the short version.
"""

import argparse
import collections
import contextlib
import itertools
import json
import pathlib
import random
import shutil
import signal
import sys
import tempfile
import threading
import time

import fleet_audit
import fleet_invariants
import takeovers
from fleet_clients import DEVICE, Clients
from fleet_events import EVENTS, Events, never_dropped
from fleet_members import Fleet
from harness import wait_until
from kills import PROBLEMS
from postgresql_proxy import Drop

REST = 900  # seconds: on a machine that others use, too


class Chaos:
    """`most_late`: seconds; what takes longer to be taken over by a free host is a fault. `rest`: seconds, within
    which what was asked for is done. `clients`, `events`: options of those."""

    def __init__(self, directory, seed, hosts=3, most_late=takeovers.LATE, rest=REST, clients=None, events=None):
        self.random = random.Random(seed)
        self.most_late = most_late
        self.rest = rest
        self.fleet = Fleet(directory, hosts, gateways=2)
        self.clients = Clients(self.fleet.gateways, seed, **(clients or {}))
        self.events = Events(self.fleet, seed, self.note, **(events or {}))
        self.faults = []
        self.takeovers = []
        self.counts = {}
        self._over = threading.Event()
        self._lags = []  # (when, how long this process was kept waiting)
        self._began = time.time()
        self._log = self.fleet.logs / "events.log"

    def note(self, words):
        with open(self._log, "a", encoding="utf-8") as log:
            log.write(f"{time.time() - self._began:8.1f} {time.time():.3f} {words}\n")

    def run(self, kinds, minutes=24 * 60, pause=2.0, more=0):
        """The faults found. `kinds`: of EVENTS, in their order as far as possible; `pause`: at most, between two.
        `more`: hosts that are cut off besides, at most, until a run has shown what it is for: on a busy machine nobody
        may have been at work when a host was struck."""
        self.fleet.start()
        threading.Thread(target=self._measure_lag, daemon=True).start()
        self.clients.start()
        wait_until("a first trial", lambda: self.fleet.server.number("SELECT count(*) FROM trials"))
        end = time.monotonic() + 60 * minutes
        pending = list(kinds)
        while pending and time.monotonic() < end:
            self.events.live(self.random.uniform(0, pause))
            self.events.happen(pending, end)
        for _ in range(more):
            self.events.pass_over()
            self.events.live(2)  # writes of hosts that are back
            if not self._proves_nothing():
                break
            self.events.happen(["cut a host off"], end)
        self.note("heal")
        self.events.heal()
        self.clients.stop()
        self._await_rest()
        self.check()
        return self.faults

    def _await_rest(self):
        """Every job has ended; of those that do not, the checks tell."""
        self.note("wait for rest")
        jobs = "SELECT count(*) FROM jobs WHERE NOT done"
        with contextlib.suppress(AssertionError):
            wait_until("rest", lambda: time.sleep(0.5) or self.fleet.server.number(jobs) == 0, self.rest)
        self.note("rest")
        self.clients.end_watches()
        self._over.set()

    def _proves_nothing(self):
        self.takeovers = takeovers.takeovers(self.fleet.server.rows, self.events.losses, self._away(), self._lag)
        self.refused = self.fleet.counted("a write of a stale lease was refused")
        self.stopped = self.fleet.counted("the lease could not be renewed: the job stops here")
        return takeovers.proves_nothing(self.takeovers, self.events.losses, self.refused, self.stopped)

    def check(self):
        rows, gateway = self.fleet.server.rows, self.fleet.gateways[0]
        jobs = gateway.json("jobs", "--limit", "0")
        trials = gateway.json("trials", "--limit", "0")
        for name, kept in (("jobs", jobs), ("trials", trials), ("leases", rows(fleet_audit.CHANGES))):
            (self.fleet.logs / f"{name}.json").write_text(json.dumps(kept, indent=1))
        proves_nothing = self._proves_nothing()
        self.counts = {
            "jobs": len(jobs),
            "states": collections.Counter(job["state"] for job in jobs),
            "trials": len(trials),
            "incumbents": rows("SELECT count(*) FROM incumbents")[0]["count"],
            "leases": rows("SELECT count(*) FROM audit_jobs WHERE epoch > was_epoch")[0]["count"],
        }
        self.faults += [
            *self.clients.faults,
            *fleet_invariants.jobs_ended_once(rows),
            *fleet_invariants.leases_taken_in_turn(rows),
            *fleet_invariants.writes_by_holders(rows),
            *fleet_invariants.nothing_is_stuck(rows),
            *fleet_invariants.incumbents_are_a_chain(rows),
            *fleet_invariants.trials_are_kept(rows, self.clients.seen),
            *fleet_invariants.trials_are_written_once(rows),
            *fleet_invariants.variants_are_tried_once(trials),
            *fleet_invariants.verdicts_are_right(trials),
            *fleet_invariants.ends_have_reasons(rows, jobs),
            *fleet_invariants.answers_were_kept(jobs, self.clients.accepted, self.clients.watched),
            *fleet_invariants.equal_requests_are_one_job(rows, self.clients.pairs),
            *self._answers_differ(),
            *takeovers.late_takeovers(self.takeovers, self.most_late),
            *proves_nothing,
            *never_dropped(self.events.happened, self._dropped()),
            *self._nothing_done(),
        ]

    def _nothing_done(self):
        """Without which there was nothing to be wrong."""
        done = {
            "job SUCCEEDED": self.counts["states"]["SUCCEEDED"],
            "promotion was made": self.counts["incumbents"],
            "trial was listed meanwhile": len(self.clients.seen),
            "equal request was answered by both gateways": len(self.clients.pairs),
        }
        return [f"no {what}" for what, count in done.items() if count == 0]

    def _dropped(self):
        """How many connections, by (statement, Drop)."""
        return sum((member.proxy.dropped for member in self.fleet.members), collections.Counter())

    def _answers(self):
        """(variant, provenance) that each member has for each problem."""
        answers = {}
        for member, problem in itertools.product(self.fleet.members, PROBLEMS):
            answer = next(iter(member.json(*DEVICE, "best", problem, check=False)), None)
            answers[member.name, problem] = (answer["variant"], answer["provenance"]) if answer else (None, "no answer")
        return answers

    def _answers_differ(self):
        """From what is promoted, though all have had time to ask for changes."""
        end = time.monotonic() + 15
        while True:
            faults = fleet_invariants.answers_are_promoted(self.fleet.server.rows, self._answers())
            if not faults or time.monotonic() > end:
                return faults
            time.sleep(1)

    def _away(self):
        away = {member.holder: member.away for member in self.fleet.hosts}
        return away | {None: self.fleet.server_away}

    def _measure_lag(self):
        while not self._over.is_set():
            begin = time.monotonic()
            time.sleep(0.05)
            self._lags.append((time.time(), time.monotonic() - begin - 0.05))

    def _lag(self, begin, end):
        return sum(lag for at, lag in self._lags if begin <= at <= end)

    def summary(self):
        lines = [f"{count:5} x {what}" for what, count in sorted(self.events.happened.items())]
        whens = collections.Counter(dict.fromkeys(Drop, 0))
        for (_, when), count in self._dropped().items():
            whens[when] += count
        lines.append("connections dropped: " + ", ".join(f"{count} {when.value}" for when, count in whens.items()))
        if self.counts:
            states = ", ".join(f"{count} {state}" for state, count in sorted(self.counts["states"].items()))
            lines.append(f"{self.counts['jobs']} jobs ({states}), {self.counts['leases']} leases")
            lines.append(
                f"{self.counts['trials']} trials, {len(self.clients.seen)} of them listed meanwhile; "
                f"{self.counts['incumbents']} promotions; {len(self.clients.pairs)} equal requests at two gateways, "
                f"{self.clients.cancelled} cancelled, {len(self.clients.watched)} watched to their end; "
                f"{self.clients.asked} questions, {self.clients.unanswered} of them without an answer"
            )
            took = sorted(takeover.took for takeover in self.takeovers) or [0.0]
            late = max((takeover.late for takeover in self.takeovers), default=0.0)
            lines.append(
                f"{len(self.takeovers)} takeovers: median {took[len(took) // 2]:.1f} s after the loss, longest "
                f"{took[-1]:.1f} s; at most {late:.1f} s after the lease while a host was free"
            )
            lines.append(
                f"{self.refused} writes of stale leases refused, {self.stopped} jobs stopped by their holders "
                "because the lease could not be renewed"
            )
        events, minutes = sum(self.events.happened.values()), (time.time() - self._began) / 60
        lines.append(f"{events} events in {minutes:.1f} min; {len(self.faults)} faults")
        return "\n".join(lines + [f"FAULT {fault}" for fault in self.faults])

    def close(self):
        """Ends all, also in the middle of a run."""
        self._over.set()
        try:
            self.events.close()
            self.clients.close()
        finally:
            self.fleet.close()


def kinds_of(rng, events):
    """A schedule of so many."""
    return rng.choices(list(EVENTS), list(EVENTS.values()), k=events)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=24 * 60, help="no more events after so many")
    parser.add_argument("--hosts", type=int, default=3, help="with devices, at least 3; default 3")
    parser.add_argument(
        "--logs", help="where the logs go; default: a new directory, which is kept when there is a fault"
    )
    options = parser.parse_args()
    if options.hosts < 3:
        parser.error(f"--hosts is {options.hosts}; it must be at least 3: one is lost, one stands still, one goes on")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    # Sockets' paths have at most 107 characters, so TMPDIR is not asked.
    directory = pathlib.Path(tempfile.mkdtemp(prefix="attune-chaos-", dir="/tmp"))
    chaos = Chaos(directory, options.seed, options.hosts)
    right = False
    try:
        kinds = kinds_of(random.Random(options.seed), options.events)
        right = not chaos.run(kinds, options.minutes)
    finally:
        print(chaos.summary(), flush=True)
        chaos.close()
        keep_logs(directory, options.logs, wanted=not right)
    return 0 if right else 1


def keep_logs(directory, target, wanted):
    if target is None and wanted:
        target = tempfile.mkdtemp(prefix="attune-chaos-logs-", dir="/tmp")
    if target is not None:
        shutil.copytree(directory / "logs", target, dirs_exist_ok=True)
        print(f"logs: {target}", flush=True)
    shutil.rmtree(directory)


if __name__ == "__main__":
    sys.exit(main())
