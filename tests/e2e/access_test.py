"""Who may do what, of a real daemon: over its socket, over TCP, and what its audit log says."""

import json
import re
import stat
import subprocess
import unittest

from harness import ATTUNED, PATIENCE, DaemonTest, run_attune

PROBLEM = "b1.h1.q64.d64.f16"


class AccessTest(DaemonTest):
    def setUp(self):
        super().setUp()
        self.both = self.daemon(flags=(f"--listen=unix:{self.directory}/attuned.sock,127.0.0.1:0",))
        self.tcp = re.search(r"address=\S*(127\.0\.0\.1:\d+)", self.both.log).group(1)

    def audited(self):
        self.both.stop()
        return [json.loads(line) for line in (self.both.data / "audit.jsonl").read_text().splitlines()]

    def test_over_tcp_callers_read_and_over_the_socket_they_tune(self):
        self.assertEqual(run_attune("--server", self.tcp, "devices").returncode, 0)
        refused = run_attune("--server", self.tcp, "tune", PROBLEM)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("loopback has the role reader; Tune needs tuner", refused.stderr)
        self.both.attune("tune", PROBLEM, "--strategy=random", "--max-trials=1", "--detach")
        lines = self.audited()
        self.assertEqual(
            [(line["principal"], line["method"], line["resource"], line["outcome"]) for line in lines],
            [
                ("loopback", "Tune", PROBLEM, "PERMISSION_DENIED"),
                (lines[1]["principal"], "Tune", PROBLEM, "OK"),
            ],
        )
        self.assertRegex(lines[1]["principal"], r"^uid:\d+$")
        self.assertEqual(stat.S_IMODE((self.both.data / "audit.jsonl").stat().st_mode), 0o600)


class ListenTest(unittest.TestCase):
    def test_what_other_hosts_can_reach_is_said_aloud(self):
        result = subprocess.run(
            [str(ATTUNED), "--check=flags", "--listen=0.0.0.0:7411"], capture_output=True, text=True, timeout=PATIENCE
        )
        self.assertEqual(result.returncode, 1)
        self.assertIn("--listen: '0.0.0.0:7411' can be reached from other hosts", result.stdout)
        self.assertIn("or say --insecure", result.stdout)


if __name__ == "__main__":
    unittest.main()
