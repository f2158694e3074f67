"""What a new user gets wrong: each gives one clear line on stderr and the documented exit code (docs/cli.md)."""

import os
import subprocess
import unittest

from harness import ATTUNED, DaemonTest, run_attune

PROBLEM = "b1.h1.q64.d64.f16"
INVALID, NOT_FOUND, UNREACHABLE = 2, 3, 4


class CommandLineTest(DaemonTest):
    def one_line(self, result, code, *words):
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        self.assertEqual(len(result.stderr.strip().splitlines()), 1, result.stderr)
        self.assertTrue(result.stderr.startswith("attune: "), result.stderr)
        for word in words:
            self.assertIn(word, result.stderr)

    def test_a_bad_problem(self):
        self.one_line(run_attune("best", "b1.h1.q64.d64.f32"), INVALID, "'f32'", "allowed")

    def test_an_unreachable_server(self):
        # Nor is there a snapshot that could answer in its place.
        empty = {"XDG_DATA_HOME": str(self.directory), "XDG_CACHE_HOME": str(self.directory)}
        result = run_attune(
            "--server", f"unix:{self.directory}/nobody.sock", "--timeout=1s", "best", PROBLEM, env=empty
        )
        self.one_line(result, UNREACHABLE, "nobody.sock")

    def test_what_only_the_server_can_know(self):
        daemon = self.daemon()
        self.one_line(
            daemon.attune("tune", PROBLEM, "--family", "attention_fast", check=False),
            NOT_FOUND,
            "attention_fast",
            "attention_opencl",
        )
        self.one_line(daemon.attune("tune", PROBLEM, "--device", "cuda:7", check=False), NOT_FOUND, "cuda:7")
        self.one_line(daemon.attune("explain", "trials/999999", check=False), NOT_FOUND, "trials/999999")
        self.one_line(daemon.attune("watch", "operations/none", check=False), NOT_FOUND, "operations/none")
        self.one_line(daemon.attune("explain", PROBLEM, check=False), NOT_FOUND, PROBLEM, "never tuned", "attune tune")
        self.one_line(daemon.attune("evaluate", PROBLEM, "attention_opencl:BLOCK_M=3", check=False), INVALID, "BLOCK_M")
        daemon.stop()


class DaemonErrorsTest(DaemonTest):
    def refused(self, *words, flags=(), environment=None):
        daemon = self.daemon(flags=flags, start=False)
        result = subprocess.run(
            daemon.command(), capture_output=True, text=True, timeout=60, env={**os.environ, **(environment or {})}
        )
        self.assertEqual(result.returncode, 1, result.stderr)
        last = result.stderr.strip().splitlines()[-1]
        for word in words:
            self.assertIn(word, last)

    def test_a_second_daemon_on_the_same_data(self):
        first = self.daemon()
        self.refused("in use by process", str(first.process.pid), str(first.data))
        first.stop()

    def test_a_database_that_is_none(self):
        data = self.directory / "data"
        data.mkdir()
        (data / "attune.db").write_bytes(b"not a database, and long enough to be looked at" * 100)
        self.refused("attune.db")

    def test_families_that_do_not_load(self):
        broken = self.directory / "families/broken"
        broken.mkdir(parents=True)
        (broken / "family.textproto").write_text('name: "broken"\nnonsense: 1\n')
        self.refused("broken/family.textproto", flags=[f"--kernels_dir={broken.parent}"])

    def test_unknown_flags(self):
        result = subprocess.run([str(ATTUNED), "--nonsense"], capture_output=True, text=True, timeout=60)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("nonsense", result.stderr)

    @unittest.skipUnless(os.geteuid() == 0, "mounting needs root")
    def test_a_full_disk_fails_the_write_and_not_the_daemon(self):
        data = self.directory / "data"
        data.mkdir()
        mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(data)], capture_output=True)
        if mount.returncode != 0:
            self.skipTest("tmpfs cannot be mounted here")
        self.addCleanup(lambda: subprocess.run(["umount", "-l", str(data)], check=True))
        daemon = self.daemon()
        filler = data / "filler"
        descriptor = os.open(filler, os.O_WRONLY | os.O_CREAT)
        try:
            while True:
                os.write(descriptor, b"x" * 4096)
        except OSError:
            os.close(descriptor)
        result = daemon.attune("tune", PROBLEM, "--strategy=random", "--max-trials=3", check=False)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("full", result.stderr)
        daemon.attune("best", PROBLEM)  # still answers
        filler.unlink()
        daemon.attune("tune", PROBLEM, "--strategy=random", "--max-trials=3")
        daemon.stop()

    @unittest.skipUnless(os.geteuid() == 0, "mounting needs root")
    def test_a_read_only_database(self):
        daemon = self.daemon()
        daemon.stop()
        mount = (
            subprocess.run(["mount", "--bind", str(daemon.data), str(daemon.data)], capture_output=True).returncode
            or subprocess.run(["mount", "-o", "remount,bind,ro", str(daemon.data)], capture_output=True).returncode
        )
        if mount != 0:
            self.skipTest("a read-only mount cannot be made here")
        self.addCleanup(lambda: subprocess.run(["umount", "-l", str(daemon.data)], check=True))
        self.refused(str(daemon.data), "Read-only file system")


if __name__ == "__main__":
    unittest.main()
