"""The short version of chaos_fleet.py: each event once, and no limit on what a busy host takes."""

import tempfile
import unittest

import postgresql
from chaos_fleet import Chaos
from fleet_events import EVENTS
from harness import PATIENCE

# Those that last go first, beside each other; hosts are killed when they are over.
SCHEDULE = (
    *("drop a commit", "drop a claim", "stop a host", "cut a host off", "drop a renewal", "set a clock"),
    *("drain a host", "kill the database", "drop a commit", "kill a host"),
)

BRIEF = {"trials": (4, 6)}
BACK_SOON = {"down": ((0, 1),)}


@unittest.skipUnless(postgresql.programs(), "no PostgreSQL server is installed (Debian's package: postgresql-15)")
class ChaosFleetTest(unittest.TestCase):
    def test_a_fleet_comes_through_one_event_of_each_kind(self):
        self.assertEqual(set(SCHEDULE), set(EVENTS))
        with tempfile.TemporaryDirectory(prefix="attune-chaos-", dir="/tmp") as directory:
            chaos = Chaos(directory, seed=1, most_late=PATIENCE, clients=BRIEF, events=BACK_SOON)
            try:
                faults = chaos.run(SCHEDULE, pause=0.5)
                print(chaos.summary(), flush=True)
                logs = "".join(f"\n{log.name}:\n{log.read_text()}" for log in chaos.fleet.logs.iterdir())
            finally:
                chaos.close()
        self.assertEqual(faults, [], logs)


if __name__ == "__main__":
    unittest.main()
