"""Faults around a live daemon: of its disk, its database, its callers. It says which, and goes on by itself.

Those of single operations of the disk are in server/store/io_faults_test.cc, those of workers in
server/supervisor/protocol_faults_test.cc and chaos_test.py. docs/faults.md has the table of all.
"""

import errno
import signal
import socket
import sqlite3
import struct
import subprocess
import unittest

from harness import ATTUNED, BUILD, KERNELS, PATIENCE, TEST_FAMILIES, DaemonTest, wait_until

PROBLEM = "b1.h1.q16.d16.f16"
OTHER = "b1.h1.q17.d16.f16"
SLOW = "b1.h1.q16.d32.f16"
TWO_TRIALS = ("--family", "slowable_opencl")


def state_of(daemon, name):
    return next(job for job in daemon.json("jobs", "--limit", "0") if job["operation"] == name)


class FaultsTest(DaemonTest):
    def daemon(self, **options):
        return super().daemon(kernels=[KERNELS, TEST_FAMILIES], **options)


class DiskTest(FaultsTest):
    def set_error(self, number):
        # In place: the daemon has the file mapped.
        with open(self.directory / "errno", "r+b") as file:
            file.write(struct.pack("=q", number))

    def test_a_job_waits_while_the_disk_fails_and_ends_when_it_is_back(self):
        (self.directory / "errno").write_bytes(struct.pack("=q", 0))
        self.assertTrue((BUILD / "tests/e2e/libfailing_disk.so").exists())
        daemon = self.daemon(start=False).start(
            environment={
                "LD_PRELOAD": str(BUILD / "tests/e2e/libfailing_disk.so"),
                "ATTUNE_FAILING_DISK": str(self.directory / "errno"),
            }
        )
        daemon.attune("tune", OTHER, *TWO_TRIALS)
        # Of another head_dim, so that it compiles, and cannot have ended before the disk fails.
        name = daemon.json("tune", SLOW, *TWO_TRIALS, "--detach")[0]["operation"]
        wait_until("the job to begin", lambda: state_of(daemon, name)["phase"] != "QUEUED")
        self.set_error(errno.EIO)
        wait_until("the job to wait", lambda: "a job waits for the store" in daemon.log)
        self.assertRegex(
            daemon.log, rf"error the store cannot write error=.*{daemon.data}/\S+: (disk I/O|Input/output) error"
        )
        self.set_error(errno.ENOSPC)
        refused = daemon.attune("tune", OTHER, *TWO_TRIALS, "--retry-known", check=False)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn(f"disk full: cannot write {daemon.data}/attune.db", refused.stderr)
        self.assertFalse(state_of(daemon, name)["done"])
        self.assertIn(daemon.json("best", OTHER)[0]["provenance"], ("EXACT", "TIE"))
        self.set_error(0)
        daemon.attune("watch", name)
        self.assertEqual(state_of(daemon, name)["state"], "SUCCEEDED")
        self.assertIn("the store writes again", daemon.log)
        trials = {trial["trial"] for trial in daemon.trials(SLOW)}
        daemon.stop()
        daemon.start()
        self.assertEqual({trial["trial"] for trial in daemon.trials(SLOW)}, trials)
        daemon.stop()


class DatabaseTest(FaultsTest):
    def test_a_database_that_another_process_has_locked_is_waited_for(self):
        daemon = self.daemon()
        other = sqlite3.connect(daemon.data / "attune.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        # The client tries again four times, and SQLite waits 5 s each time: the default of 10 s ends in the middle.
        refused = daemon.attune("tune", PROBLEM, *TWO_TRIALS, "--timeout=60s", check=False)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn(f"{daemon.data}/attune.db is locked by another process", refused.stderr)
        daemon.attune("best", PROBLEM)  # which needs no lock
        other.execute("ROLLBACK")
        daemon.attune("tune", PROBLEM, *TWO_TRIALS)
        other.close()
        daemon.stop()

    def refused_at_the_start(self, daemon, *words):
        """By the daemon and by --check, with these words."""
        result = subprocess.run(daemon.command(), capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(result.returncode, 1)
        check = [str(ATTUNED), "--check=store", f"--data_dir={daemon.data}"]
        checked = subprocess.run(check, capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(checked.returncode, 1)
        for word in words:
            self.assertIn(word, result.stderr)
            self.assertIn(word, checked.stdout)

    def test_one_from_the_future_is_refused_and_left_as_it_is(self):
        daemon = self.daemon()
        daemon.stop()
        database = sqlite3.connect(daemon.data / "attune.db")
        database.execute("PRAGMA user_version = 1000")
        database.close()
        before = (daemon.data / "attune.db").read_bytes()
        self.refused_at_the_start(daemon, f"{daemon.data}/attune.db is of schema version 1000", "start the newer one")
        self.assertEqual((daemon.data / "attune.db").read_bytes(), before)

    def test_a_damaged_one_is_named_and_a_backup_takes_its_place(self):
        backups = self.directory / "backups"
        daemon = self.daemon(flags=[f"--backup_dir={backups}"])
        daemon.attune("tune", PROBLEM, *TWO_TRIALS)
        daemon.attune("backup", "nightly")
        daemon.stop()
        path = daemon.data / "attune.db"
        path.write_bytes(b"\xee" * 100 + path.read_bytes()[100:])
        self.refused_at_the_start(daemon, f"{path} is damaged or not a database")
        # docs/runbook.md, "The database is damaged".
        for file in daemon.data.glob("attune.db*"):
            file.rename(self.directory / file.name)
        restore = [str(ATTUNED), f"--restore={backups}/nightly", f"--data_dir={daemon.data}"]
        subprocess.run(restore, check=True, capture_output=True, timeout=PATIENCE)
        daemon.start()
        self.assertIn(daemon.json("best", PROBLEM)[0]["provenance"], ("EXACT", "TIE"))
        daemon.stop()


class ClientsTest(FaultsTest):
    # A preface and half a frame of headers: a call that never comes.
    HALF_A_CALL = (
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\4" + bytes(5) + b"\0\0\x40\1\4\0\0\0\1" + 20 * b"\x82"
    )

    def client(self, daemon, *arguments):
        client = daemon.popen(*arguments)

        def close():
            client.kill()
            client.wait()
            client.stdout.close()
            client.stderr.close()

        self.addCleanup(close)
        return client

    def test_those_that_are_gone_or_read_nothing_or_never_finish_hold_nobody_up(self):
        daemon = self.daemon()
        for _ in range(100):
            half_open = socket.socket(socket.AF_UNIX)
            self.addCleanup(half_open.close)
            half_open.connect(daemon.address.removeprefix("unix:"))
            half_open.sendall(self.HALF_A_CALL)
        waits = self.client(daemon, "tune", PROBLEM, *TWO_TRIALS)
        wait_until("its job", lambda: daemon.json("jobs", "--limit", "0"))
        [job] = daemon.json("jobs", "--limit", "0")
        watching = [self.client(daemon, "watch", job["operation"]) for _ in range(4)]
        for client in watching[:2]:
            client.send_signal(signal.SIGSTOP)
        for client in (waits, *watching[2:]):
            client.kill()
        daemon.attune("watch", job["operation"])
        self.assertEqual(state_of(daemon, job["operation"])["state"], "SUCCEEDED")
        self.assertIn(daemon.json("best", PROBLEM)[0]["provenance"], ("EXACT", "TIE"))
        daemon.stop()


class MemoryTest(FaultsTest):
    def test_a_worker_that_has_too_little_memory_fails_its_job_and_the_next_one_is_fine(self):
        daemon = self.daemon(start=False)
        command = daemon.command()
        # Workers inherit it, and PoCL gives a quarter of it to a buffer.
        daemon.command = lambda: ["prlimit", f"--data={2 << 30}", *command]
        daemon.start()
        failed = daemon.attune("tune", "b1.h16.q65536.d128.f16", *TWO_TRIALS, check=False)
        self.assertNotEqual(failed.returncode, 0)
        self.assertRegex(failed.stderr, r"\d+ bytes: CL_")
        daemon.attune("tune", PROBLEM, *TWO_TRIALS)
        self.assertIn(daemon.json("best", PROBLEM)[0]["provenance"], ("EXACT", "TIE"))
        daemon.stop()


if __name__ == "__main__":
    unittest.main()
