"""The Slurm script: its warning drains the daemon, whose end it waits for and whose exit status it has.

Slurm is not needed: what it does to the script is an environment and a signal, and `attuned` and `scontrol` are
programs that note what they are told.
"""

import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "deploy/slurm/attuned.sbatch"
FLAGS = (ROOT / "server/daemon/flags.cc").read_text()

# Serves on its socket until SIGTERM; with WAITS it ends once there is a file may_end.
DAEMON = """#!/usr/bin/python3
import os, pathlib, signal, socket, sys, time
noted = pathlib.Path(os.environ["NOTED"])
def note(text):
    with noted.open("a") as file:
        file.write(text + "\\n")
signals = []
signal.signal(signal.SIGTERM, lambda *_: (note("TERM"), signals.append(1)))
for argument in sys.argv[1:]:
    note(argument)
if "OWN_END" in os.environ:
    sys.exit(int(os.environ["OWN_END"]))
(listen,) = [a for a in sys.argv if a.startswith("--listen=unix:")]
server = socket.socket(socket.AF_UNIX)
server.bind(listen.removeprefix("--listen=unix:").split(",")[0])
while not signals:
    time.sleep(0.02)
may_end = noted.with_name("may_end")
while "WAITS" in os.environ and not may_end.exists():
    time.sleep(0.02)
note("ended")
sys.exit(int(os.environ.get("STATUS", "0")))
"""


def wait_for(condition, what):
    for _ in range(1000):
        if condition():
            return
        time.sleep(0.02)
    raise AssertionError(f"no {what}")


class SbatchTest(unittest.TestCase):
    def setUp(self):
        directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.data, self.noted, self.programs = directory / "data", directory / "noted", directory / "bin"
        self.temporary = directory / "tmp"
        self.programs.mkdir()
        self.temporary.mkdir()
        self.program("attuned", DAEMON)
        self.program("scontrol", '#!/bin/sh\necho "scontrol $*" >> "$NOTED"\n')

    def program(self, name, text):
        (self.programs / name).write_text(text)
        (self.programs / name).chmod(0o755)

    def start(self, *arguments, **variables):
        environment = {
            "PATH": f"{self.programs}:{os.environ['PATH']}",
            "NOTED": str(self.noted),
            "ATTUNE_DATA": str(self.data),
            "TMPDIR": str(self.temporary),
            "SLURM_JOB_ID": "42",
            "SLURM_CPUS_PER_TASK": "8",
            "SLURMD_NODENAME": "node7",
            **variables,
        }
        job = subprocess.Popen(
            ["bash", SCRIPT, *arguments], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.addCleanup(job.communicate)
        self.addCleanup(job.terminate)
        return job

    def serving(self, *arguments, **variables):
        job = self.start(*arguments, **variables)
        wait_for((self.data / "address").exists, "address")
        return job

    def lines(self):
        return self.noted.read_text().splitlines()

    def test_the_warning_drains_and_the_exit_status_is_the_daemons(self):
        job = self.serving(STATUS="7")
        job.send_signal(signal.SIGTERM)
        self.assertEqual(job.wait(), 7)
        self.assertEqual(self.lines()[-2:], ["TERM", "ended"])

    def test_further_warnings_neither_reach_the_daemon_nor_end_the_wait(self):
        job = self.serving(STATUS="7", WAITS="1")
        job.send_signal(signal.SIGTERM)
        wait_for(lambda: "TERM" in self.lines(), "SIGTERM")
        for _ in range(3):
            job.send_signal(signal.SIGTERM)
            time.sleep(0.1)
        self.assertIsNone(job.poll())
        self.noted.with_name("may_end").touch()
        self.assertEqual(job.wait(), 7)
        self.assertEqual(self.lines().count("TERM"), 1)
        self.assertEqual(self.lines()[-1], "ended")

    def test_a_daemon_that_ends_by_itself_is_not_queued_again(self):
        for status in (0, 3):
            job = self.start(OWN_END=str(status), ATTUNE_REQUEUES="5")
            self.assertEqual(job.wait(), status)
        self.assertNotIn("scontrol", self.noted.read_text())

    def test_a_daemon_that_is_killed_is_not_taken_for_one_that_drained(self):
        self.program("attuned", "#!/bin/sh\nkill -KILL $$\n")
        job = self.start(ATTUNE_REQUEUES="5")
        self.assertEqual(job.wait(), 128 + signal.SIGKILL)

    def test_a_drained_job_is_queued_again_as_often_as_was_said(self):
        cases = [({}, False), ({"ATTUNE_REQUEUES": "2"}, True)]
        cases += [({"ATTUNE_REQUEUES": "2", "SLURM_RESTART_COUNT": str(count)}, count < 2) for count in (1, 2)]
        cases += [({"ATTUNE_REQUEUES": "2", "STATUS": "1"}, False)]
        for variables, again in cases:
            with self.subTest(variables):
                self.noted.unlink(missing_ok=True)
                job = self.serving(**variables)
                job.send_signal(signal.SIGTERM)
                job.wait()
                after = self.lines()[self.lines().index("ended") + 1 :]
                self.assertEqual(after, ["scontrol requeue 42"] if again else [])

    def test_clients_find_the_address_while_the_daemon_is_there(self):
        job = self.serving()
        address = (self.data / "address").read_text().strip()
        self.assertTrue(pathlib.Path(address.removeprefix("unix:")).is_socket(), address)
        self.assertIn(f"--listen={address}", self.lines())
        self.assertEqual(pathlib.Path(address.removeprefix("unix:")).parent.stat().st_mode & 0o777, 0o700)
        self.assertEqual((self.data / "node").read_text(), "node7\n")
        job.send_signal(signal.SIGTERM)
        self.assertEqual(job.wait(), 0)
        self.assertEqual(list(self.data.iterdir()), [])
        self.assertEqual(list(self.temporary.iterdir()), [])

    def test_the_address_of_a_job_that_was_killed_is_forgotten(self):
        self.data.mkdir()
        (self.data / "address").write_text("unix:/gone\n")
        self.program("attuned", f"#!/bin/sh\nls {self.data} > $NOTED\n")
        self.assertEqual(self.start().wait(), 0)
        self.assertEqual(self.lines(), [])

    def test_other_hosts_are_let_in_with_tls_alone(self):
        self.serving(ATTUNED_TLS_CERT="server.pem", ATTUNE_PORT="7500")
        self.assertEqual((self.data / "address").read_text(), "node7:7500\n")
        (listen,) = [line for line in self.lines() if line.startswith("--listen=")]
        self.assertTrue(listen.endswith(",0.0.0.0:7500"), listen)

    def test_flags_are_the_daemons_and_those_of_the_command_line_come_last(self):
        self.serving("--log_format=json")
        known = re.findall(r"ABSL_FLAG\(\s*[^;]*?,\s*(\w+),", FLAGS)
        arguments = self.lines()
        for argument in arguments:
            self.assertIn(argument.removeprefix("--").partition("=")[0], known)
        self.assertIn(f"--data_dir={self.data}", arguments)
        self.assertIn("--compile_workers=8", arguments)
        self.assertEqual(arguments[-1], "--log_format=json")

    def test_a_store_on_nfs_is_refused(self):
        self.program("stat", "#!/bin/sh\necho nfs\n")
        job = self.start()
        self.assertEqual(job.wait(), 1)
        self.assertIn("NFS", job.stderr.read())
        self.assertFalse(self.noted.exists())
        self.serving(ATTUNED_STORE="postgresql://tuner@db/attune")

    def test_the_warning_leaves_time_for_the_drain(self):
        directives = dict(re.findall(r"^#SBATCH --([\w-]+)=(\S+)$", SCRIPT.read_text(), re.MULTILINE))
        (warning,) = re.fullmatch(r"B:TERM@(\d+)", directives["signal"]).groups()
        (drain,) = re.findall(r"drain_timeout, absl::Seconds\((\d+)\)", FLAGS)
        self.assertGreater(int(warning), int(drain) + 5)
        self.assertEqual(directives["gres"], "gpu:1")


if __name__ == "__main__":
    unittest.main()
