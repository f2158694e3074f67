"""kill -9 of the daemon in the commits of a tuning job: nothing committed is lost, nothing is tried twice.

Each kill follows a write to the database's log, by up to two milliseconds: it finds the commit written in part, written
and not yet synced, or just answered. ATTUNE_KILLS is how often (default 6; the full proof is 50).
"""

import json
import os
import random
import subprocess
import threading
import time
import unittest

from harness import DaemonTest, Writes, wait_until

PROBLEM = "b1.h1.q64.d64.f16"
KILLS = int(os.environ.get("ATTUNE_KILLS", "6"))


class KillTest(DaemonTest):
    def integrity(self, daemon):
        # The daemon is down: nobody else has the file open.
        result = subprocess.run(
            ["sqlite3", "-readonly", str(daemon.data / "attune.db"), "PRAGMA integrity_check"],
            capture_output=True,
            text=True,
        )
        return (result.stdout + result.stderr).strip()

    def report(self, daemon, seen, killed):
        """Collects, by name, the trials that the daemon reports while it lives."""
        while not killed.is_set():
            result = daemon.attune("--format=json", "trials", PROBLEM, "--limit", "0", check=False)
            if result.returncode == 0:
                seen.update(json.loads(line)["trial"] for line in result.stdout.splitlines())

    def test_no_reported_trial_is_lost_and_every_variant_is_tried_once(self):
        random.seed(os.environ.get("ATTUNE_SEED", "1"))
        daemon = self.daemon()
        name = daemon.json("tune", PROBLEM, "--strategy=exhaustive", "--detach")[0]["operation"]
        total = sum(f["variants"] for f in daemon.json("space", PROBLEM)[0]["families"])
        seen = set()
        kills = in_commits = 0
        log = daemon.data / "attune.db-wal"
        # Else nothing might be reported before the last kill, and nothing could be lost.
        wait_until("a first trial", lambda: daemon.trials(PROBLEM))
        while kills < KILLS:
            # A job that is done can no longer be interrupted, so a new one is started.
            if [j for j in daemon.json("jobs", "--limit", "0") if j["operation"] == name and j["done"]]:
                name = daemon.json("tune", PROBLEM, "--strategy=exhaustive", "--detach", "--retry-known")[0][
                    "operation"
                ]
            killed = threading.Event()
            asking = threading.Thread(target=self.report, args=(daemon, seen, killed))
            asking.start()
            with Writes(log) as writes:
                time.sleep(random.uniform(0.0, 2.0))
                writes.forget()
                in_commits += writes.wait(10)
                time.sleep(random.uniform(0.0, 0.002))
                daemon.process.kill()
            daemon.kill()
            killed.set()
            asking.join()
            kills += 1
            self.assertEqual(self.integrity(daemon), "ok", f"after kill {kills}")
            daemon.start()
            stored = {t["trial"] for t in daemon.trials(PROBLEM)}
            self.assertLessEqual(seen, stored, f"lost after kill {kills}")
        self.assertTrue(seen)
        self.assertTrue(in_commits)
        daemon.attune("watch", name)
        first_job = [t for t in daemon.trials(PROBLEM) if t["job"] == name]
        self.assertNoneAgain(first_job)
        tried = {t["variant"] for t in daemon.trials(PROBLEM) if t["verdict"] != "LOST"}
        self.assertEqual(len(tried), total)
        print(
            f"{kills} kills, {in_commits} of them in commits, {len(seen)} trials seen while alive, {total} variants",
            flush=True,
        )
        daemon.stop()

    def test_workers_do_not_outlive_a_killed_daemon(self):
        daemon = self.daemon()
        daemon.attune("tune", PROBLEM, "--detach")
        wait_until("a first trial", lambda: daemon.trials(PROBLEM))
        workers = subprocess.run(
            ["pgrep", "-P", str(daemon.process.pid)], capture_output=True, text=True
        ).stdout.split()
        self.assertTrue(workers)
        daemon.kill()
        wait_until("the workers to end", lambda: not any(os.path.exists(f"/proc/{pid}/exe") for pid in workers), 30)


if __name__ == "__main__":
    unittest.main()
