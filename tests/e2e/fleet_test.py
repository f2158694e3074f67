"""Daemons with one store on PostgreSQL: what one finds out, the others answer with; work for a class goes to any."""

import json
import signal
import subprocess
import unittest

from fleet_case import FleetCase
from harness import ATTUNED, Daemon, wait_until

PROBLEM = "b1.h1.q32.d32.f16"
BUDGET = ("--strategy=random", "--max-trials=4", "--seed=3")
SOME = ("--strategy=random", "--max-trials=48", "--seed=3")  # more than are done between two looks at it
LONG = ("--strategy=random", "--max-trials=400", "--seed=3")  # is cancelled
OWN = ("--device", "opencl:0")  # this host's card: no work for others


class FleetTest(FleetCase):
    def await_taken(self, gateway, *arguments):
        """What a command prints once the gateway has heard of a host that can do it."""

        def taken():
            result = gateway.attune(*arguments, check=False)
            return result.stdout if result.returncode == 0 else None

        return wait_until("work that is taken", taken)

    def trials_stored(self):
        return self.server.number("SELECT count(*) FROM trials")

    def state(self, daemon, job):
        return next(line["state"] for line in daemon.json("jobs") if line["operation"] == job)

    def tune(self, daemon, problem=PROBLEM):
        result = daemon.json("tune", problem, *BUDGET)[-1]
        self.assertEqual(result["type"], "tuning", daemon.log)
        return result

    def provenance(self, daemon, problem=PROBLEM):
        return daemon.json("best", problem)[0]["provenance"]

    def test_what_one_finds_out_the_other_serves(self):
        one, two = self.member("one"), self.member("two")
        self.assertNotIn(self.provenance(two), ("EXACT", "TIE"))
        self.tune(one)
        # Without a restart: it sees what others promote.
        wait_until("the other's incumbent", lambda: self.provenance(two) in ("EXACT", "TIE"))
        self.assertEqual(two.json("best", PROBLEM)[0]["variant"], one.json("best", PROBLEM)[0]["variant"])

        # Its code, too, which is compiled nowhere else.
        code = self.directory / "code"
        two.attune("best", PROBLEM, f"--artifact={code}")
        self.assertGreater(code.stat().st_size, 0)
        self.assertFalse((two.data / "attune.db").exists())

        # Work that the other does can be watched.
        job = one.json("tune", "b1.h1.q64.d32.f16", "--detach", *BUDGET)[0]["operation"]
        self.assertEqual(two.json("watch", job)[-1]["type"], "tuning", two.log)

        # Every operation is listed by both, and a new start goes on where the last one was.
        self.assertEqual(len(two.json("jobs")), 2)
        two.stop()
        two = self.member("two")
        self.assertIn(self.provenance(two), ("EXACT", "TIE"))
        self.assertEqual(len(two.trials(PROBLEM)), len(one.trials(PROBLEM)))
        for daemon in (one, two):
            daemon.stop()

    def test_a_host_whose_card_another_process_holds_leaves_work_for_its_class_to_others(self):
        one = self.member("one")
        one.attune(*OWN, "tune", PROBLEM, *BUDGET)  # from now on it has the card
        two = self.member("two", flags=[f"--lock_dir={self.directory}/one/locks"])
        problems = ["b1.h1.q64.d32.f16", "b1.h1.q96.d32.f16"]
        jobs = [two.json("tune", problem, "--detach", *BUDGET)[0]["operation"] for problem in problems]
        for job in jobs:
            self.assertEqual(two.json("watch", job)[-1]["type"], "tuning", two.log)
        [said] = [line for line in two.log.splitlines() if "another process has a card" in line]
        self.assertIn("is in use by process", said)
        self.assertNotIn("job claimed", two.log)
        # What names its card is nobody else's: that fails, as on a daemon of its own.
        self.assertIn("is in use by process", two.attune(*OWN, "tune", PROBLEM, *SOME, check=False).stderr)
        one.stop()
        job = two.json("tune", "b1.h1.q160.d32.f16", "--detach", *BUDGET)[0]["operation"]
        self.assertEqual(two.json("watch", job)[-1]["type"], "tuning", two.log)

    def test_equal_requests_for_own_cards_are_each_daemons_own(self):
        one, two = self.member("one"), self.member("two")
        jobs = [daemon.json(*OWN, "tune", PROBLEM, "--detach", *BUDGET)[0]["operation"] for daemon in (one, two)]
        self.assertNotEqual(*jobs)
        for daemon, job in zip((one, two), jobs, strict=True):
            self.assertEqual(daemon.json("watch", job)[-1]["type"], "tuning", daemon.log)
        self.assertEqual({job["operation"] for job in one.json("jobs")}, set(jobs))

    def test_the_database_may_be_away_for_a_while(self):
        daemon = self.member("one")
        self.tune(daemon)
        job = daemon.json("tune", "b1.h1.q64.d32.f16", "--detach", *BUDGET)[0]["operation"]
        self.server.stop()
        self.assertIn(self.provenance(daemon), ("EXACT", "TIE"), "what is in memory is served")
        self.server.start()
        self.assertEqual(daemon.json("watch", job)[-1]["type"], "tuning", daemon.log)
        self.assertEqual(self.server.number("SELECT count(*) FROM jobs WHERE done"), 2)
        daemon.stop()

    def test_an_interrupted_job_goes_on_at_the_next_start(self):
        daemon = self.member("one")
        job = daemon.json(*OWN, "tune", PROBLEM, "--detach", *BUDGET)[0]["operation"]
        wait_until("a trial", lambda: self.server.number("SELECT count(*) FROM trials") > 0)
        daemon.kill()
        other = self.member("two")
        [left] = other.json("jobs")
        self.assertEqual((left["operation"], left["done"]), (job, False), "it is not the other's to work on")
        daemon = self.member("one")
        self.assertEqual(daemon.json("watch", job)[-1]["type"], "tuning", daemon.log)
        self.assertNoneAgain(daemon.json("trials", "--limit", "0"))

    def test_a_gateway_has_other_hosts_tune(self):
        gateway = self.member("gateway", gateway=True)
        refused = gateway.attune("tune", PROBLEM, *BUDGET, check=False)
        self.assertIn("no host that is alive has a device", refused.stderr)
        one = self.member("one")
        wait_until("its class", lambda: "pthread" in gateway.attune("hosts").stdout)
        self.assertEqual(
            {host["host"]: (host["state"], [d["class"] for d in host["devices"]]) for host in gateway.json("hosts")},
            {self.name(gateway): ("LIVE", []), self.name(one): ("LIVE", ["pthread"])},
        )

        # Without a name it is the one class that there is.
        self.await_taken(gateway, "tune", PROBLEM, *BUDGET)
        for daemon in (gateway, one):
            wait_until("the incumbent", lambda d=daemon: self.provenance(d) in ("EXACT", "TIE"))
        code = self.directory / "code"
        gateway.attune("best", PROBLEM, f"--artifact={code}")
        self.assertGreater(code.stat().st_size, 0)

        # One job, whoever is asked for it; a card by its host's name.
        long = [
            daemon.json("--device", "pthread", "tune", "b1.h1.q64.d32.f16", "--detach", *LONG)[0]["operation"]
            for daemon in (gateway, one)
        ]
        self.assertEqual(*long)
        card = f"{self.name(one)}/devices/opencl:0"
        named = gateway.json("--device", card, "tune", "b1.h1.q96.d32.f16", "--detach", *BUDGET)[0]["operation"]
        unknown = gateway.attune("--device", "h200", "tune", PROBLEM, check=False)
        self.assertEqual(unknown.returncode, 3)
        self.assertIn(f"classes of all hosts: pthread ({self.name(one)})", unknown.stderr)

        # Progress and cancellation by way of any of them.
        wait_until("progress", lambda: self.state(gateway, long[0]) == "RUNNING")
        self.assertEqual(self.holder(gateway, long[0]), self.name(one))
        gateway.attune("cancel", long[0])
        wait_until("its end", lambda: self.state(gateway, long[0]) == "CANCELLED")
        self.assertEqual(gateway.json("watch", named)[-1]["type"], "tuning", one.log)

        # What nobody works on ends where it is cancelled.
        one.attune("hosts", "drain", self.name(one))
        wait_until("the drain", lambda: "draining" in one.log)
        waiting = gateway.json("tune", "b1.h1.q128.d32.f16", "--detach", *BUDGET)[0]["operation"]
        self.assertEqual(gateway.json("cancel", waiting)[0]["state"], "CANCELLED")
        waiting = gateway.json("tune", "b1.h1.q160.d32.f16", "--detach", *BUDGET)[0]["operation"]
        one.attune("hosts", "undrain", self.name(one))
        self.assertEqual(gateway.json("watch", waiting)[-1]["type"], "tuning", one.log)
        one.stop()
        self.assertEqual([host["state"] for host in gateway.json("hosts") if host["devices"]], ["STOPPED"])
        gateway.attune("hosts", "forget", self.name(one))
        self.assertEqual([host["host"] for host in gateway.json("hosts")], [self.name(gateway)])
        gateway.stop()

    def test_a_lost_hosts_job_goes_on_elsewhere_and_its_writes_are_refused(self):
        gateway = self.member("gateway", gateway=True)
        hosts = {self.name(daemon): daemon for daemon in (self.member("one"), self.member("two"))}
        wait_until("their class", lambda: "pthread" in gateway.attune("hosts").stdout)
        lines = self.await_taken(gateway, "tune", PROBLEM, "--detach", *SOME, "--format=json")
        job = json.loads(lines.splitlines()[0])["operation"]

        # One stands still for longer than its lease.
        [first] = wait_until("its host", lambda: {self.holder(gateway, job)} - {None})
        wait_until("trials", lambda: self.trials_stored() > 1)
        hosts[first].process.send_signal(signal.SIGSTOP)
        before = self.trials_stored()
        second = wait_until("another host", lambda: {first, None, self.holder(gateway, job)} - {first, None})
        self.assertEqual({first, *second}, set(hosts))
        [second] = second

        # The other is killed. When the first comes back the job is not its own any more, until that lease is over, too.
        wait_until("trials there", lambda: self.trials_stored() > before)
        hosts[second].kill()
        hosts[first].process.send_signal(signal.SIGCONT)
        wait_until("the zombie's end of it", lambda: "job left to another holder" in hosts[first].log)
        wait_until("the first again", lambda: self.holder(gateway, job) == first)
        states = {self.name(gateway): "LIVE", first: "LIVE", second: "LOST"}
        wait_until("states", lambda: {host["host"]: host["state"] for host in gateway.json("hosts")} == states)
        self.assertEqual(gateway.json("watch", job)[-1]["type"], "tuning", hosts[first].log)
        self.assertNoneAgain(gateway.json("trials", "--limit", "0"))
        self.assertEqual(
            self.server.number(f"SELECT array_length(string_to_array(lost_by, ','), 1) FROM jobs WHERE name = '{job}'"),
            2,
        )

    def copy(self, source, *target):
        command = [ATTUNED, f"--copy_from={source}", *target]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def test_a_store_moves_there_and_back(self):
        alone = self.daemon()
        alone.attune("tune", PROBLEM, *BUDGET)
        served, trials = alone.json("best", PROBLEM), alone.json("trials", "--limit", "0")
        refused = self.copy(alone.data, f"--store={self.server.target}")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("in use by process", refused.stderr)
        alone.stop()
        there = self.copy(alone.data, f"--store={self.server.target}")
        self.assertEqual(there.returncode, 0, there.stderr)
        self.assertRegex(there.stdout, rf"(?m)^  trials +{len(trials)}$")
        self.assertIn(f"the daemon with --data_dir={alone.data} goes on with them", there.stdout)
        self.assertRegex(there.stderr, "copied trials: .*(\n.*)*compared trials: ")
        again = self.copy(alone.data, f"--store={self.server.target}")
        self.assertEqual(again.returncode, 1)
        self.assertIn("a copy replaces nothing", again.stderr)

        moved = self.member("moved", start=False)
        moved.data = alone.data
        moved.start()
        self.assertIn(self.name(moved).removeprefix("hosts/"), there.stdout)
        self.assertEqual(moved.json("best", PROBLEM), served)
        self.assertEqual(moved.json("trials", "--limit", "0"), trials)
        back = self.copy(self.server.target, f"--data_dir={self.directory}/back")
        self.assertEqual(back.returncode, 0, back.stderr)
        self.assertIn(f"not copied: what {self.name(moved)} wrote since", back.stdout)
        moved.stop()

        last = Daemon(self.directory / "last")
        last.directory.mkdir()
        last.data = self.directory / "back"
        self.addCleanup(lambda: last.process and last.process.poll() is None and last.kill())
        last.start()
        self.assertEqual(last.json("best", PROBLEM), served)
        self.assertEqual(last.json("trials", "--limit", "0"), trials)

    def test_a_copy_that_makes_no_sense_is_refused(self):
        secret = "postgresql://attune:geheim@/attune?host=/tmp/attune_no_such_folder"
        for source, target, code, message in (
            (self.directory, f"--data_dir={self.directory}/other", 2, "both stores are SQLite's"),
            (secret, f"--store={secret}", 2, "both stores are on PostgreSQL"),
            (secret, f"--data_dir={self.directory}/other", 1, "/tmp/attune_no_such_folder"),
            (self.directory / "none", f"--store={secret}", 1, "there is no attune.db in it"),
        ):
            result = self.copy(source, target)
            self.assertEqual(result.returncode, code, result.stderr)
            self.assertIn(message, result.stderr)
            self.assertNotIn("geheim", result.stderr + result.stdout)

    def test_check_says_what_is_wrong(self):
        def check(store):
            command = [ATTUNED, "--check=flags,store", f"--store={store}", f"--data_dir={self.directory}/data"]
            return subprocess.run(
                [*command, f"--lock_dir={self.directory}/locks"], capture_output=True, text=True, check=False
            )

        result = check(self.server.target)
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertIn("tables to be made", result.stdout)
        self.member("one").stop()
        self.assertRegex(check(self.server.target).stdout, r"store +ok: .* schema version \d+, 0 trials")
        result = check("postgresql:///attune?host=/tmp/attune_no_such_folder")
        self.assertEqual(result.returncode, 1)
        self.assertIn("/tmp/attune_no_such_folder", result.stdout)
        self.assertEqual(check("mysql://db/attune").returncode, 1)


if __name__ == "__main__":
    unittest.main()
