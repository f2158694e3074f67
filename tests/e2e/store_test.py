"""What becomes of the store's files under a running daemon: nothing is lost silently."""

import os
import unittest

from harness import KERNELS, TEST_FAMILIES, DaemonTest

PROBLEM = "b1.h1.q16.d16.f16"
OTHER = "b1.h1.q17.d16.f16"
FAMILY = ("--family", "slowable_opencl")


class StoreTest(DaemonTest):
    def setUp(self):
        super().setUp()
        self.d = self.daemon(kernels=[KERNELS, TEST_FAMILIES])
        self.d.attune("tune", PROBLEM, *FAMILY)

    def test_a_database_that_is_cut_takes_no_writes(self):
        os.truncate(self.d.data / "attune.db", 0)
        refused = self.d.attune("tune", OTHER, *FAMILY, check=False)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("attune.db was cut", refused.stdout + refused.stderr)
        self.assertIn("the database is not in its place", self.d.log)
        self.assertEqual(self.d.json("best", PROBLEM)[0]["problem"], PROBLEM)
        self.d.kill()


if __name__ == "__main__":
    unittest.main()
