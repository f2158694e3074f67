"""tests/load/fleet_scale, small: simulated hosts on a copied store, claims by the queue's index, equal answers."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import postgresql
from harness import ROOT

SIZE = {"trials": 2000, "incumbents": 200, "hosts": 8, "queued": 1000, "ended": 9000, "seconds": 12}
LONGEST_S = 900
SHORT = ("--rounds=1", "--round-seconds=0.2", "--samples=8", "--no-fsync")


@unittest.skipUnless(postgresql.programs(), "no PostgreSQL server is installed (Debian's package: postgresql-15)")
class FleetScaleTest(unittest.TestCase):
    def test_a_small_fleet(self):
        with tempfile.TemporaryDirectory(prefix="attune-e2e-") as folder:
            file = pathlib.Path(folder) / "report.json"
            size = [f"--{name}={value}" for name, value in SIZE.items()]
            command = [sys.executable, str(ROOT / "tests/load/fleet_scale"), *size, *SHORT, f"--json={file}"]
            with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as script:
                try:
                    said = script.communicate(timeout=LONGEST_S)[0]
                except subprocess.TimeoutExpired:
                    script.terminate()  # it ends its server and its daemons
                    said = script.communicate()[0]
            self.assertEqual(script.returncode, 0, said)
            report = json.loads(file.read_text())
        self.assertEqual({name: report[name] for name in SIZE}, SIZE)
        hosts = report["hosts_simulated"]
        # Each is told of all others at its start, and after each heartbeat.
        for phase in ("heartbeats", "idle", "busy"):
            self.assertGreaterEqual(hosts[phase]["told"], SIZE["hosts"])
            self.assertGreaterEqual(hosts[phase]["renewals"], SIZE["hosts"])
        self.assertEqual(hosts["heartbeats"]["claims"], 0)
        self.assertEqual(hosts["idle"]["jobs_finished"], 0, "there was nothing to claim")
        self.assertGreaterEqual(hosts["busy"]["jobs_finished"], SIZE["hosts"])
        self.assertEqual(report["compared"], 8)


if __name__ == "__main__":
    unittest.main()
