"""attune backup while the daemon works, and a daemon made of the backup elsewhere."""

import pathlib
import subprocess
import unittest

from harness import ATTUNED, KERNELS, TEST_FAMILIES, Daemon, DaemonTest, wait_until

PROBLEMS = ["b1.h1.q16.d16.f16", "b1.h1.q17.d16.f16", "b1.h1.q18.d16.f16"]
BUSY = "b1.h1.q64.d64.f16"
FAMILY = ("--family", "slowable_opencl")


def restore(backup, data):
    return subprocess.run([str(ATTUNED), f"--restore={backup}", f"--data_dir={data}"], capture_output=True, text=True)


class BackupTest(DaemonTest):
    def setUp(self):
        super().setUp()
        self.backups = self.directory / "backups"
        self.d = self.daemon(kernels=[KERNELS, TEST_FAMILIES], flags=[f"--backup_dir={self.backups}"])

    def other_daemon(self, name, data):
        directory = self.directory / name
        directory.mkdir()
        other = Daemon(directory, [KERNELS, TEST_FAMILIES])
        other.data = data
        self.addCleanup(lambda: other.process and other.process.poll() is None and other.kill())
        return other

    def served(self, daemon, problem):
        """What is served for a problem, and its code."""
        file = self.directory / "artifact.bin"
        answer = daemon.json("best", problem, "--artifact", str(file))[0]
        return answer["trial"], answer["variant"], answer["artifact_sha256"], file.read_bytes()

    def test_a_daemon_made_of_a_backup_taken_under_load_serves_every_incumbent(self):
        for problem in PROBLEMS:
            self.d.attune("tune", problem, *FAMILY)
        self.d.attune("tune", BUSY, "--detach")
        wait_until("the job to run", lambda: self.d.trials(BUSY))
        backups = [self.d.json("backup", f"under-load-{i}")[0] for i in range(3)]
        busy = self.d.json("jobs", "--active")
        self.assertTrue(busy, "the job was to run during the backups")
        served = {problem: self.served(self.d, problem) for problem in PROBLEMS}
        self.d.attune("cancel", "--all")
        self.d.stop()
        backup = backups[-1]
        self.assertEqual(backup["missing_artifacts"], 0)
        self.assertGreaterEqual(backup["incumbents"], len(PROBLEMS))

        data = self.directory / "elsewhere"
        result = restore(backup["path"], data)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(f"{backup['trials']} trials", result.stdout)
        check = subprocess.run(
            ["sqlite3", "-readonly", str(data / "attune.db"), "PRAGMA integrity_check"], capture_output=True, text=True
        )
        self.assertEqual(check.stdout.strip(), "ok", check.stderr)
        other = self.other_daemon("other", data).start()
        self.assertEqual({problem: self.served(other, problem) for problem in PROBLEMS}, served)
        self.assertTrue(other.trials(BUSY), "what the job had committed came along")
        other.attune("cancel", "--all")
        other.stop()

    def test_a_restore_replaces_nothing(self):
        self.d.attune("tune", PROBLEMS[0], *FAMILY)
        backup = self.d.json("backup")[0]
        running = restore(backup["path"], self.d.data)
        self.assertEqual(running.returncode, 1)
        self.assertIn("in use by process", running.stderr)
        before = self.d.trials(PROBLEMS[0])
        self.d.stop()
        stopped = restore(backup["path"], self.d.data)
        self.assertEqual(stopped.returncode, 1)
        self.assertIn("attune.db exists", stopped.stderr)
        self.assertEqual(self.d.start().trials(PROBLEMS[0]), before)

    def test_backups_are_listed_and_a_name_is_used_once(self):
        self.d.attune("backup", "one")
        again = self.d.attune("backup", "one", check=False)
        self.assertNotEqual(again.returncode, 0)
        self.assertIn("there is a backup 'one' already", again.stderr)
        outside = self.d.attune("backup", "../one", check=False)
        self.assertEqual(outside.returncode, 2)
        self.d.attune("backup", "two")
        listed = self.d.json("backup", "--list")
        self.assertEqual([b["backup"] for b in listed], ["backups/two", "backups/one"])
        self.assertEqual(pathlib.Path(listed[0]["path"]), self.backups / "two")

    def test_without_a_directory_for_them_there_are_none(self):
        self.d.stop()
        self.d.flags = []
        self.d.start()
        refused = self.d.attune("backup", check=False)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("--backup_dir", refused.stderr)


if __name__ == "__main__":
    unittest.main()
