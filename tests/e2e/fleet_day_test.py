"""A laptop's day with a fleet, all of it by the address of one gateway: docs/tutorials/fleet.md tells the same."""

import json
import signal
import unittest

from fleet_case import FleetCase
from harness import run_attune, wait_until

PROBLEM = "b1.h1.q32.d32.f16"
BUDGET = ("--strategy=random", "--max-trials=64", "--seed=3")


class FleetDayTest(FleetCase):
    def laptop(self, *arguments):
        """What the command prints, by lines."""
        done = run_attune("--format=json", *arguments, env={"ATTUNE_SERVER": self.address})
        self.assertEqual(done.returncode, 0, f"attune {' '.join(arguments)}:\n{done.stdout}{done.stderr}")
        return [json.loads(line) for line in done.stdout.splitlines()]

    def state_of(self, name):
        return next(host["state"] for host in self.laptop("hosts") if host["host"] == name)

    def test_a_laptops_day(self):
        gateway = self.member("gateway", gateway=True)
        self.address = gateway.address
        hosts = {self.name(host): host for host in (self.member("one"), self.member("two"))}
        wait_until("both hosts", lambda: sum(bool(host["devices"]) for host in self.laptop("hosts")) == 2)

        # In the morning: tune, look on, and go. The gateway knows the hosts' class from its next heartbeat on.
        tune = ("--format=json", "tune", PROBLEM, "--detach", *BUDGET)
        started = wait_until("a job", lambda: gateway.attune(*tune, check=False).stdout.partition('{"type":"error"')[0])
        job = json.loads(started.splitlines()[0])["operation"]
        watch = gateway.popen("watch", job)
        first = wait_until("its host", lambda: self.holder(gateway, job))
        wait_until("trials", lambda: len(self.laptop("trials", PROBLEM, "--limit", "0")) > 1)
        watch.send_signal(signal.SIGINT)
        watch.communicate()
        before = {trial["trial"] for trial in self.laptop("trials", PROBLEM, "--limit", "0")}
        self.assertEqual(self.laptop("jobs")[0]["state"], "RUNNING", "whoever looks on may go")

        # At noon its host dies; in the afternoon somebody looks on again, as if nothing had been.
        hosts.pop(first).kill()
        [(second, survivor)] = hosts.items()
        result = self.laptop("watch", job)[-1]
        self.assertEqual(result["type"], "tuning", survivor.log)
        wait_until("the dead host is LOST", lambda: self.state_of(first) == "LOST")
        trials = self.laptop("trials", PROBLEM, "--limit", "0")
        self.assertLess(before, {trial["trial"] for trial in trials}, "nothing of the morning is lost")
        self.assertIn(f"job started job={job}", survivor.log, second)

        # In the evening: the best, with its code, and what was done. The gateway hears of promotions within seconds.
        wait_until("the incumbent", lambda: self.laptop("best", PROBLEM)[0]["provenance"] in ("EXACT", "TIE"))
        code = self.directory / "code"
        self.laptop("best", PROBLEM, f"--artifact={code}")
        self.assertGreater(code.stat().st_size, 0)
        [done] = self.laptop("jobs")
        self.assertEqual((done["operation"], done["state"]), (job, "SUCCEEDED"))


if __name__ == "__main__":
    unittest.main()
