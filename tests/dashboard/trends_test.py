"""Years of nights (fill_year): every planted regression is named, with its night and cause, and nothing else is.

Environment: ATTUNE_YEAR_SEEDS ("1"), ATTUNE_YEAR_NIGHTS ("90": each night is some two hundred commits).
"""

import contextlib
import datetime
import json
import os
import unittest

from stored_year import StoredYear

SEEDS = os.environ.get("ATTUNE_YEAR_SEEDS", "1").split(",")
NIGHTS = os.environ.get("ATTUNE_YEAR_NIGHTS", "90")


class TrendsTest(unittest.TestCase):
    maxDiff = None

    def test_years(self):
        for seed in SEEDS:
            with self.subTest(seed=seed), contextlib.closing(StoredYear(seed, NIGHTS, trials=100)) as year:
                self.every_planted_regression_is_named_and_nothing_else(year.daemon, year.truth)
                self.a_driver_is_compared_with_the_one_before(year.daemon, year.truth)

    def every_planted_regression_is_named_and_nothing_else(self, daemon, truth):
        run = daemon.attune("trends", "--all", "--format=json", check=False)
        self.assertEqual(run.returncode, 5, run.stderr)
        trends = {(row["problem"], row["device_class"]): row for row in map(json.loads, run.stdout.splitlines())}
        self.assertEqual(len(trends), 120)
        planted = {(row["problem"], row["device_class"]): row for row in truth["slower"]}
        self.assertEqual({key for key, row in trends.items() if row["state"] == "SLOWER"}, set(planted))
        for key, row in planted.items():
            self.assertAlmostEqual(trends[key]["change"], row["change"], delta=0.015, msg=key)
            if row["why"] not in ("driver", "toolchain"):
                continue
            # A night with another process on the device settles nothing; one that was slow by chance comes before it.
            since = datetime.date.fromisoformat(trends[key]["since"][:10])
            late = (since - datetime.date.fromisoformat(row["date"])).days
            self.assertIn(late, range(-1, 3), key)
            if late >= 0:
                self.assertEqual([change["what"] for change in trends[key]["changes"]], [row["why"]], key)
        moved = truth["moved"]
        self.assertEqual(trends[moved["problem"], moved["device_class"]]["state"], "MOVED")

    def a_driver_is_compared_with_the_one_before(self, daemon, truth):
        # Of two nights alone; what is near the threshold may lie below it in one.
        planted = [row for row in truth["slower"] if row["why"] == "driver" and row["change"] > 0.04]
        compared = daemon.json("compare", f"date={planted[0]['date']}T00:00:00Z", "now")[0]
        slower = {row["problem"] for row in compared["rows"] if row["comparison"] == "SLOWER"}
        self.assertLessEqual({row["problem"] for row in planted}, slower)
        self.assertLess(len(slower), 15, "most problems are as they were")


if __name__ == "__main__":
    unittest.main()
