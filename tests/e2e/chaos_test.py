"""The short version of chaos_workers.py: a few moments, and as long to recover as a busy host may take."""

import os
import re
import signal
import unittest

from chaos_workers import PROBLEMS, Chaos
from harness import PATIENCE, DaemonTest, wait_until

TWO_TRIALS = ("--strategy=random", "--max-trials=2", "--seed=7")


class ChaosTest(DaemonTest):
    def test_a_stopped_idle_device_worker_costs_the_next_tuning_nothing(self):
        daemon = self.daemon()
        daemon.attune("tune", PROBLEMS[0], *TWO_TRIALS)
        [worker] = re.findall(r'worker started worker="device opencl:0" pid=(\d+)', daemon.log)
        os.kill(int(worker), signal.SIGSTOP)
        # At once, and not when the next call to it has timed out.
        wait_until("its end", lambda: f'pid={worker} cause="stopped by a signal"' in daemon.log)
        daemon.attune("tune", PROBLEMS[0], *TWO_TRIALS, "--retry-known")
        self.assertEqual({trial["verdict"] for trial in daemon.trials(PROBLEMS[0])}, {"OK"})
        daemon.stop()

    def test_a_kill_while_the_first_codes_are_compiled_fails_no_job(self):
        daemon = self.daemon(flags=["--compile_workers=1"])
        name = daemon.json("tune", PROBLEMS[0], *TWO_TRIALS, "--detach")[0]["operation"]
        started = r"worker started worker=compile pid=(\d+)"
        wait_until("the compile worker", lambda: re.search(started, daemon.log))
        self.assertEqual(daemon.trials(PROBLEMS[0]), [])  # the reference's among them
        os.kill(int(re.search(started, daemon.log)[1]), signal.SIGKILL)
        daemon.attune("watch", name)
        self.assertEqual(daemon.json("jobs")[0]["state"], "SUCCEEDED")
        self.assertEqual([trial["verdict"] for trial in daemon.trials(PROBLEMS[0])], ["OK", "OK"])
        self.assertIn('cause="killed by SIGKILL"', daemon.log)
        daemon.stop()

    def test_no_verdict_and_no_job_suffers_from_workers_that_are_killed_or_stopped(self):
        chaos = Chaos(self.directory, seed=1, recovery=PATIENCE, problems=PROBLEMS[:1])
        self.addCleanup(chaos.close)
        faults = chaos.run(moments=8)
        print(chaos.summary(), flush=True)
        self.assertEqual(faults, [])


if __name__ == "__main__":
    unittest.main()
