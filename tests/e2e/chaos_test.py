"""The short version of chaos_workers.py: a few moments, and as long to recover as a busy host may take."""

import unittest

from chaos_workers import PROBLEMS, Chaos
from harness import PATIENCE, DaemonTest


class ChaosTest(DaemonTest):
    def test_no_verdict_and_no_job_suffers_from_workers_that_are_killed_or_stopped(self):
        chaos = Chaos(self.directory, seed=1, recovery=PATIENCE, problems=PROBLEMS[:1])
        self.addCleanup(chaos.close)
        faults = chaos.run(moments=8)
        print(chaos.summary(), flush=True)
        self.assertEqual(faults, [])


if __name__ == "__main__":
    unittest.main()
