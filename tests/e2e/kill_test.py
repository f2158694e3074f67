"""kill -9 of the daemon at random moments of a tuning job: nothing committed is lost, nothing is tried twice.

ATTUNE_KILLS is how often (default 6; the full proof is 50).
"""

import os
import random
import subprocess
import threading
import time
import unittest

from harness import DaemonTest, wait_until

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

    def reported(self, daemon, name, seen):
        """Collects what the daemon reports as done while it lives: trials by name."""
        try:
            seen.update(t["trial"] for t in daemon.trials(PROBLEM))
        except (AssertionError, subprocess.TimeoutExpired):
            pass  # it was killed under us

    def test_no_reported_trial_is_lost_and_every_variant_is_tried_once(self):
        random.seed(os.environ.get("ATTUNE_SEED", "1"))
        daemon = self.daemon()
        name = daemon.json("tune", PROBLEM, "--detach")[0]["operation"]
        total = sum(f["variants"] for f in daemon.json("space", PROBLEM)[0]["families"])
        seen = set()
        kills = 0
        while kills < KILLS:
            # The moment is random; a job that is done can no longer be interrupted, so a new one is started.
            if [j for j in daemon.json("jobs", "--limit", "0") if j["operation"] == name and j["done"]]:
                name = daemon.json("tune", PROBLEM, "--detach", "--retry-known")[0]["operation"]
            asking = threading.Thread(target=self.reported, args=(daemon, name, seen))
            asking.start()
            time.sleep(random.uniform(0.0, 0.6))
            daemon.kill()
            asking.join()
            kills += 1
            self.assertEqual(self.integrity(daemon), "ok", f"after kill {kills}")
            daemon.start()
            stored = {t["trial"] for t in daemon.trials(PROBLEM)}
            self.assertLessEqual(seen, stored, f"lost after kill {kills}")
        daemon.attune("watch", name)
        first_job = [t for t in daemon.trials(PROBLEM) if t["job"] == name]
        variants = [t["variant"] for t in first_job if t["verdict"] != "LOST"]
        self.assertEqual(len(variants), len(set(variants)))
        tried = {t["variant"] for t in daemon.trials(PROBLEM) if t["verdict"] != "LOST"}
        self.assertEqual(len(tried), total)
        print(f"{kills} kills, {len(seen)} trials seen while alive, {total} variants", flush=True)
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
