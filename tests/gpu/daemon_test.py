"""A script's own daemon and its client: what fails or hangs ends the script, and nothing is left behind."""

import pathlib
import sys
import tempfile
import types
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import submit
from daemon import Daemon

SERVES = "echo ' info serving ' >&2; "
STAYS = "exec sleep 600"
IGNORES_SIGTERM = "trap '' TERM; "


class DaemonTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="daemon-test-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def program(self, name, script):
        path = self.folder / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def started(self, script=SERVES + STAYS):
        self.program("attuned", script)
        daemon = Daemon(self.folder, self.folder, [])
        self.addCleanup(daemon.log.close)
        self.addCleanup(daemon.process.wait)
        self.addCleanup(daemon.process.kill)  # first
        return daemon

    def ends_with(self, message):
        return self.assertRaisesRegex(SystemExit, message)

    def test_a_command_has_a_limit_of_time(self):
        self.program("attune", STAYS)
        with self.ends_with(r"attune --server unix:.* devices did not end within 0\.1 s"):
            self.started().attune("devices", limit_s=0.1)

    def test_a_command_that_fails_ends_the_script_unless_it_may(self):
        self.program("attune", "echo 'no such device' >&2; exit 3")
        daemon = self.started()
        with self.ends_with("attune devices ended with 3: no such device"):
            daemon.attune("devices")
        self.assertEqual(daemon.attune("devices", check=False), [])

    def test_a_daemon_that_does_not_stop_is_killed(self):
        daemon = self.started(IGNORES_SIGTERM + SERVES + "while :; do sleep 0.1; done")
        with self.ends_with(r"the daemon did not stop within 0\.1 s"):
            daemon.stop(limit_s=0.1)
        self.assertEqual(daemon.process.returncode, -9)

    def test_one_that_stops_is_waited_for(self):
        daemon = self.started()
        daemon.stop()
        self.assertEqual(daemon.process.returncode, -15)

    def test_an_author_without_a_token_ends_the_script(self):
        self.program("attune", "echo 'only an administrator may' >&2; exit 3")
        daemon = types.SimpleNamespace(address="unix:/nobody", bundle=self.folder)
        with self.ends_with("token create: only an administrator may"):
            submit.Author(daemon, self.folder / "log", self.folder)


if __name__ == "__main__":
    unittest.main()
