"""Variants chosen by what they must be."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from choose import Chosen, choose

VARIANTS = [
    Chosen("a", {"BLOCK_M": 16, "SPLITS": 1, "STAGES": 2}),
    Chosen("b", {"BLOCK_M": 64, "SPLITS": 1, "STAGES": 1}),
    Chosen("c", {"BLOCK_M": 64, "SPLITS": 4, "STAGES": 2}),
    Chosen("d", {"BLOCK_M": 128, "SPLITS": 8, "STAGES": 2}),
]


class Choose(unittest.TestCase):
    def test_takes_what_has_every_value(self):
        self.assertEqual(choose(VARIANTS, {"BLOCK_M": 64, "STAGES": 2}).text, "c")

    def test_takes_values_by_a_condition(self):
        self.assertEqual(choose(VARIANTS, {"SPLITS": lambda splits: splits > 4}).text, "d")

    def test_among_several_the_nearest(self):
        self.assertEqual(choose(VARIANTS, {"SPLITS": 1}, {"BLOCK_M": 128, "STAGES": 1}).text, "b")

    def test_none_when_there_is_none(self):
        self.assertIsNone(choose(VARIANTS, {"BLOCK_M": 32}))
        self.assertIsNone(choose([], {"BLOCK_M": 32}))

    def test_a_parameter_that_the_family_lacks_is_an_error(self):
        with self.assertRaisesRegex(ValueError, "'SPLIT' is not one of BLOCK_M, SPLITS, STAGES"):
            choose(VARIANTS, {"SPLIT": 1})


if __name__ == "__main__":
    unittest.main()
