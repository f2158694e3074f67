"""Who may do what, of a real daemon: over its socket, over TCP, and what its audit log says."""

import json
import re
import shlex
import stat
import subprocess
import tempfile
import unittest

from harness import ATTUNED, PATIENCE, ROOT, DaemonTest, run_attune

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


class BackupNameTest(DaemonTest):
    def test_a_backup_that_would_lie_elsewhere_is_refused_and_audited(self):
        daemon = self.daemon(flags=[f"--backup_dir={self.directory}/backups"])
        names = ("../elsewhere", "/tmp/elsewhere", "..")
        for name in names:
            refused = daemon.attune("backup", name, check=False)
            self.assertEqual(refused.returncode, 2, refused.stderr)
            self.assertIn(f"'{name}'", refused.stderr)
        daemon.stop()
        self.assertEqual(list(self.directory.rglob("*elsewhere*")), [])
        lines = [json.loads(line) for line in (daemon.data / "audit.jsonl").read_text().splitlines()]
        self.assertEqual(
            [(line["method"], line["resource"], line["outcome"]) for line in lines],
            [("CreateBackup", name, "INVALID_ARGUMENT") for name in names],
        )


class QuotaTest(DaemonTest):
    def test_a_token_has_no_more_operations_than_its_quota_and_an_admin_as_many_as_it_wants(self):
        daemon = self.daemon(flags=(f"--listen=unix:{self.directory}/attuned.sock,127.0.0.1:0", "--quota_operations=1"))
        tcp = re.search(r"address=\S*(127\.0\.0\.1:\d+)", daemon.log).group(1)
        file = self.directory / "token"
        file.write_text(daemon.attune("token", "create", "ci", "--role", "tuner").stdout)

        def tune(keys, *arguments):
            return run_attune(*arguments, "tune", f"b1.h4.q512.kv{keys}.d64.f16", "--detach")

        with_token = ("--server", tcp, "--token-file", str(file))
        asked = run_attune(*with_token, "whoami").stdout.splitlines()
        self.assertEqual(asked[:2], ["token:ci, with the role tuner", "  quota of operations: 1"])
        first = tune(512, *with_token)
        self.assertEqual(first.returncode, 0, first.stderr)
        refused = tune(513, *with_token)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("token:ci has 1 operations queued or running; its quota of operations is 1", refused.stderr)
        self.assertEqual(tune(513, "--server", daemon.address).returncode, 0)
        self.assertEqual(tune(514, "--server", daemon.address).returncode, 0)
        self.assertEqual(run_attune(*with_token, "cancel", first.stdout.strip()).returncode, 0)
        again = tune(515, *with_token)
        self.assertEqual(again.returncode, 0, again.stderr)


class TlsTest(DaemonTest):
    """The commands of docs/access.md, as they stand there; only the port is another."""

    def setUp(self):
        super().setUp()
        section = (ROOT / "docs/access.md").read_text().partition("### An authority of one's own")[2]
        making, self.using = re.findall(r"^```sh\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)[:2]
        subprocess.run(["bash", "-e", "-c", making], cwd=self.directory, check=True, capture_output=True)
        daemon = shlex.split(self.using.splitlines()[0])[1:]
        flags = [flag.replace(":7411", ":0") for flag in daemon]
        names = r"((?:cert|key|ca)=)"
        self.served = self.daemon(flags=[re.sub(names, rf"\g<1>{self.directory}/", flag) for flag in flags])
        self.port = re.search(r"address=\S*0\.0\.0\.0:(\d+)", self.served.log).group(1)

    def attune(self, *arguments, server="localhost", options=None):
        if options is None:
            options = shlex.split(self.using.splitlines()[1])[3:-1]
        files = [value if value.startswith("--") else str(self.directory / value) for value in options]
        return run_attune("--server", f"{server}:{self.port}", *files, *arguments)

    def test_the_certificate_of_the_document_is_a_tuners(self):
        self.assertEqual(self.attune("devices").returncode, 0)
        self.assertEqual(self.attune("cancel", "7").returncode, 3, "there is no such operation")
        self.assertIn("cert:nightly has the role tuner; CreateBackup needs admin", self.attune("backup").stderr)

    def test_nobody_else_connects_and_it_is_audited(self):
        refused = self.attune("devices", options=["--tls-ca", "ca.pem"])
        self.assertEqual(refused.returncode, 4)
        self.assertIn("or the client's certificate (tls_cert)", refused.stderr)
        in_clear = self.attune("devices", options=[])
        self.assertIn("it may want TLS (tls_ca)", in_clear.stderr)
        misnamed = self.attune("devices", server="127.0.0.2")
        self.assertIn(f"no TLS connection to 127.0.0.2:{self.port}", misnamed.stderr)
        self.served.stop()
        lines = [json.loads(line) for line in (self.served.data / "audit.jsonl").read_text().splitlines()]
        self.assertIn(("TLS", "UNAUTHENTICATED"), [(line["method"], line["outcome"]) for line in lines])
        self.assertIn("peer did not return a certificate", "".join(line["error"] for line in lines))


class ListenTest(unittest.TestCase):
    def test_a_key_of_another_certificate_is_named(self):
        with tempfile.TemporaryDirectory() as directory:
            for name in ("one", "other"):
                subprocess.run(
                    shlex.split("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=x")
                    + shlex.split(f"-keyout {directory}/{name}.key -out {directory}/{name}.pem"),
                    check=True,
                    capture_output=True,
                )
            result = subprocess.run(
                [str(ATTUNED), "--check=flags", f"--tls_cert={directory}/one.pem", f"--tls_key={directory}/other.key"],
                capture_output=True,
                text=True,
                timeout=PATIENCE,
            )
            self.assertEqual(result.returncode, 1)
            self.assertIn(f"--tls_key is '{directory}/other.key', which is not the key of --tls_cert", result.stdout)

    def test_what_other_hosts_can_reach_is_said_aloud(self):
        result = subprocess.run(
            [str(ATTUNED), "--check=flags", "--listen=0.0.0.0:7411"], capture_output=True, text=True, timeout=PATIENCE
        )
        self.assertEqual(result.returncode, 1)
        self.assertIn("--listen: '0.0.0.0:7411' can be reached from other hosts", result.stdout)
        self.assertIn("or say --insecure", result.stdout)


if __name__ == "__main__":
    unittest.main()
