"""The short version of chaos_fleet.py: each event at least once, and no limit on what a busy host takes."""

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

BRIEF = {"trials": (4, 6), "unfinished": 2}  # the one host that is left has room for two
BACK_SOON = {"down": ((0, 1),)}


@unittest.skipUnless(postgresql.programs(), "no PostgreSQL server is installed (Debian's package: postgresql-15)")
class ChaosFleetTest(unittest.TestCase):
    def test_a_fleet_comes_through_one_event_of_each_kind(self):
        self.assertEqual(set(SCHEDULE), set(EVENTS))
        with tempfile.TemporaryDirectory(prefix="attune-chaos-", dir="/tmp") as directory:
            chaos = Chaos(directory, seed=1, most_late=PATIENCE, rest=PATIENCE, clients=BRIEF, events=BACK_SOON)
            right = False
            try:
                right = not chaos.run(SCHEDULE, pause=0.5, more=4)
            finally:
                print(chaos.summary(), flush=True)
                if not right:
                    print(*(f"{log.name}:\n{log.read_text()}" for log in chaos.fleet.logs.iterdir()), sep="\n")
                chaos.close()
        self.assertEqual(chaos.faults, [])


if __name__ == "__main__":
    unittest.main()
