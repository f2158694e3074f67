"""A sweep of a class on a real PostgreSQL: all hosts that have the class do its problems, whoever is lost meanwhile."""

import json
import signal
import unittest

from fleet_case import FleetCase
from harness import wait_until

PLAN = """
title: "fleet"
shapes { product { batch: 1 heads_q: [1, 2, 3, 4, 5, 6] seq_q: 16 head_dim: 32 } }
budget { trials_per_problem: 2 }
"""


class FleetSweepTest(FleetCase):
    def sweep(self, gateway):
        plan = self.directory / "plan.textproto"
        plan.write_text(PLAN)

        def taken():
            """Once the gateway has heard of a host that can do it."""
            result = gateway.attune("--device=pthread", "sweep", str(plan), "--detach", "--format=json", check=False)
            return result.stdout if result.returncode == 0 else None

        return json.loads(wait_until("a sweep that is taken", taken).splitlines()[0])["operation"]

    def parts(self, daemon, sweep):
        return daemon.json("jobs", "--sweep", sweep, "--limit", "0")

    def holders(self):
        """The host of each part that is under way, by the store."""
        rows = self.server.rows(
            "SELECT name, holder FROM jobs WHERE parent_id IS NOT NULL AND NOT done AND holder <> ''"
        )
        return {row["name"]: "hosts/" + row["holder"] for row in rows}

    def test_problems_are_done_by_all_hosts_also_when_the_sweeps_own_is_killed(self):
        gateway = self.member("gateway", gateway=True)
        hosts = {self.name(daemon): daemon for daemon in (self.member("one"), self.member("two"))}
        sweep = self.sweep(gateway)
        wait_until("both at work", lambda: set(self.holders().values()) == set(hosts))

        lost = self.holder(gateway, sweep)
        [other] = set(hosts) - {lost}

        def killed_at_a_part():
            hosts[lost].process.send_signal(signal.SIGSTOP)
            if lost in self.holders().values():
                hosts[lost].kill()
                return True
            hosts[lost].process.send_signal(signal.SIGCONT)
            return False

        wait_until("a moment at which it is at a part", killed_at_a_part)
        wait_until("the sweep at the other", lambda: self.holder(gateway, sweep) == other)
        report = gateway.json("watch", sweep)[-1]
        self.assertEqual(report["type"], "sweep", hosts[other].log)
        self.assertEqual([row["outcome"] for row in report["rows"]], ["NEW"] * 6, report)
        cards = {f"{host}/devices/opencl:0" for host in hosts}
        self.assertLessEqual({row["device"] for row in report["rows"]}, cards)

        # What had ended was not done again, and of the part that was lost what had been tried.
        parts = self.parts(gateway, sweep)
        self.assertEqual(len(parts), 6)
        self.assertEqual({part["state"] for part in parts}, {"SUCCEEDED"})
        self.assertEqual({part["device"] for part in parts}, {row["device"] for row in report["rows"]})
        self.assertNoneAgain(gateway.json("trials", "--limit", "0"))

        # Those of a card, whichever host's.
        on = gateway.json("--device", "opencl:0", "jobs", "--sweep", sweep)
        self.assertEqual({part["operation"] for part in on}, {part["operation"] for part in parts})
        on = gateway.json("--device", f"{other}/devices/opencl:0", "jobs", "--sweep", sweep)
        self.assertEqual({part["device"] for part in on}, {f"{other}/devices/opencl:0"})
        lost_by = self.server.number("SELECT count(*) FROM jobs WHERE parent_id IS NOT NULL AND lost_by <> ''")
        self.assertEqual(lost_by, 1, "the part that the killed host was at")

    def test_cancelling_it_ends_its_problems_everywhere(self):
        gateway = self.member("gateway", gateway=True)
        hosts = {self.name(daemon): daemon for daemon in (self.member("one"), self.member("two"))}
        sweep = self.sweep(gateway)
        wait_until("both at work", lambda: set(self.holders().values()) == set(hosts))
        gateway.attune("cancel", sweep)
        wait_until("the end of all", lambda: self.server.number("SELECT count(*) FROM jobs WHERE NOT done") == 0)
        self.assertEqual([job["state"] for job in gateway.json("jobs")], ["CANCELLED"])
        states = [part["state"] for part in self.parts(gateway, sweep)]
        self.assertIn("CANCELLED", states)
        self.assertLessEqual(set(states), {"CANCELLED", "SUCCEEDED"})


if __name__ == "__main__":
    unittest.main()
