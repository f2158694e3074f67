"""A daemon that has been here before answers while its host is still being probed."""

import unittest

from harness import ATTUNED, DaemonTest, wait_until

PROBLEM = "b1.h1.q64.d64.f16"

# A worker that does something else before, or instead of, probing its host while there is a file `gate`.
WORKER = """#!/bin/sh
case "$*" in *--role=probe*) {probe} ;; esac
exec {worker} "$@"
"""


class EarlyAnswerTest(DaemonTest):
    def tuned(self, probe):
        """A daemon that has tuned and stopped, its answer, and the gate in front of its next probe."""
        gate = self.directory / "gate"
        worker = self.directory / "worker"
        worker.write_text(WORKER.format(probe=probe.format(gate=gate), worker=ATTUNED.with_name("attune-worker")))
        worker.chmod(0o755)
        daemon = self.daemon(flags=[f"--worker={worker}"])
        daemon.attune("tune", PROBLEM, "--strategy=random", "--max-trials=2", "--seed=7")
        served = daemon.json("best", PROBLEM)[0]
        daemon.stop()
        gate.touch()
        return daemon, served, gate

    def test_look_ups_are_answered_before_the_host_is_probed(self):
        daemon, served, gate = self.tuned("while [ -e {gate} ]; do sleep 0.02; done")
        daemon.start(until="while the host is probed")
        self.assertEqual(daemon.json("best", PROBLEM)[0], served)
        refused = daemon.attune("--timeout=5s", "tune", PROBLEM, check=False)
        self.assertIn("probing its host", refused.stderr)
        gate.unlink()
        wait_until("the tuner", lambda: " serving " in daemon.log)
        daemon.attune("tune", PROBLEM, "--strategy=random", "--max-trials=2", "--seed=7")
        daemon.stop()

    def test_a_probe_that_fails_takes_no_answer_away(self):
        daemon, served, gate = self.tuned("[ -e {gate} ] && exit 1")
        daemon.start()
        self.assertIn("could not be probed", daemon.log)
        self.assertEqual(daemon.json("best", PROBLEM)[0], served)
        daemon.stop()
        gate.unlink()
        daemon.start()
        self.assertNotIn("the host has changed", daemon.log)
        daemon.stop()

    def test_a_host_that_has_changed_is_noticed(self):
        daemon = self.daemon()
        daemon.stop()
        remembered = daemon.data / "host.binpb"
        remembered.write_bytes(remembered.read_bytes().replace(b"opencl:0", b"opencl:7"))
        daemon.start()
        self.assertIn("the host has changed", daemon.log)
        self.assertEqual(daemon.json("devices")[0]["device"], "opencl:0")
        self.assertNotIn(b"opencl:7", remembered.read_bytes())
        self.assertIn(b"opencl:0", remembered.read_bytes())
        daemon.stop()

    def test_other_devices_chosen_make_no_other_host(self):
        daemon = self.daemon()
        daemon.stop()
        daemon.flags.append("--devices=opencl:9")
        daemon.start()
        self.assertIn("--devices names one that this host does not have", daemon.log)
        self.assertNotIn("the host has changed", daemon.log)
        daemon.stop()


if __name__ == "__main__":
    unittest.main()
