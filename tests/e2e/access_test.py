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

    def test_a_token_gives_its_role_over_tcp_until_it_is_revoked(self):
        secret = self.both.attune("token", "create", "ci", "--role", "tuner").stdout
        file = self.directory / "token"
        file.write_text(secret)
        with_token = ("--server", self.tcp, "--token-file", str(file))
        self.assertEqual(run_attune(*with_token, "cancel", "7").returncode, 3, "there is no such operation")
        backup = run_attune(*with_token, "backup")
        self.assertIn("token:ci has the role tuner; CreateBackup needs admin", backup.stderr)
        self.assertNotIn(secret.strip().encode(), (self.both.data / "tokens.binpb").read_bytes())
        self.both.attune("token", "revoke", "ci")
        self.assertIn("not known, or was revoked", run_attune(*with_token, "cancel", "7").stderr)
        self.assertEqual(
            [(line["principal"].split(":")[0], line["method"], line["outcome"]) for line in self.audited()],
            [
                ("uid", "CreateToken", "OK"),
                ("token", "CancelOperation", "NOT_FOUND"),
                ("token", "CreateBackup", "PERMISSION_DENIED"),
                ("uid", "RevokeToken", "OK"),
                ("loopback", "CancelOperation", "UNAUTHENTICATED"),
            ],
        )


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
