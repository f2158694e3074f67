"""The ladder climbed over spaces made up for the purpose."""

import itertools
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import ladder
import ladder_steps
from choose import Chosen
from ladder_steps import HOPPER, MMA, SIMT, WMMA, Row


def space(family, **values):
    """Every combination of the values."""
    variants = []
    for combination in itertools.product(*values.values()):
        parameters = dict(zip(values, combination))
        text = f"{family}:" + ",".join(f"{name}={value}" for name, value in parameters.items())
        variants.append(Chosen(text, parameters))
    return variants


SCALAR = {"ACC": [32, 16], "CP_ASYNC_STAGES": [0, 1, 2], "SWIZZLE": [0, 1], "MIN_CTAS": [1], "PERSISTENT": [0]}
TILED = {"BLOCK_M": [32, 64], "BLOCK_N": [32], "WARPS": [4], "VEC": [4, 16], "KV_SPLITS": [1, 2, 4, 8]}
SPACES = {
    SIMT: space(SIMT, **SCALAR, **TILED),
    WMMA: space(WMMA, **SCALAR, **TILED),
    MMA: space(
        MMA, BLOCK_M=[64, 128], BLOCK_N=[64], WARPS_M=[4], WARPS_N=[1, 2], K_STAGES=[1, 2], V_STAGES=[1, 2],
        Q_REGISTERS=[0, 1], LAZY_RESCALE=[0, 1], MIN_CTAS=[1], PACK_GQA=[0], KV_SPLITS=[1, 2, 4, 8],
        COMBINE=[0, 1, 2], PERSISTENT=[0, 1], LONGEST_FIRST=[0],
    ),
    HOPPER: space(
        HOPPER, CONSUMERS=[1, 2, 3], BLOCK_N=[64, 80], STAGES=[2], PINGPONG=[0, 1], OVERLAP=[0, 1], LAZY_RESCALE=[1],
        ONES=[0, 1], TEAMS=[1], PACK_GQA=[0], SPLIT=[0], KV_SPLITS=[1], LONGEST_FIRST=[0, 1],
    ),
}  # fmt: skip
HOPPER_GOAL = next(
    variant
    for variant in SPACES[HOPPER]
    if "CONSUMERS=3,BLOCK_N=80,STAGES=2,PINGPONG=1,OVERLAP=1,LAZY_RESCALE=1,ONES=1" in variant.text
    and variant.text.endswith("FIRST=1")
)
GOAL = next(
    variant
    for variant in SPACES[MMA]
    if "BLOCK_M=128,BLOCK_N=64,WARPS_M=4,WARPS_N=1,K_STAGES=2,V_STAGES=1,Q_REGISTERS=0,LAZY_RESCALE=1" in variant.text
    and "KV_SPLITS=1,COMBINE=0,PERSISTENT=0" in variant.text
)


class Climb(unittest.TestCase):
    def climb(self, attempt=lambda chosen: ("OK", 10.0, 33, 128), goal=GOAL):
        return list(ladder_steps.climb(SPACES, goal, attempt, 132))

    def of(self, rows, begin):
        return next(row for row in rows if row.step.startswith(begin))

    def test_begins_plainly_and_ends_with_the_fastest(self):
        rows = [row for row in self.climb() if row.variant]
        self.assertEqual(rows[0].parameters["VEC"], 4)
        self.assertEqual((rows[0].family, rows[0].parameters["KV_SPLITS"]), (SIMT, 1))
        self.assertEqual(rows[-1].variant, GOAL.text)

    def test_a_step_changes_nothing_else_where_the_family_lets_it(self):
        rows = self.climb()
        before, row = self.of(rows, "plain"), self.of(rows, "16 bytes")
        self.assertEqual(ladder_steps.changes(row, before), "VEC 4 to 16")

    def test_keys_are_split_until_there_are_four_ctas_an_sm(self):
        few = self.climb(lambda chosen: ("OK", 10.0, 66, 128))
        self.assertEqual(self.of(few, "keys split").parameters["KV_SPLITS"], 8)
        many = self.climb(lambda chosen: ("OK", 10.0, 264, 128))
        self.assertEqual(self.of(many, "keys split").parameters["KV_SPLITS"], 2)

    def test_what_is_so_already_is_no_step(self):
        self.assertNotIn("its packing of heads", [row.step for row in self.climb()])

    def test_another_family_is_a_change_beside_the_parameters_that_both_have(self):
        rows = self.climb()
        changes = ladder_steps.changes(self.of(rows, "tensor cores"), self.of(rows, "keys split"))
        self.assertEqual(changes, "attention_wmma, BLOCK_M 32 to 64")

    def test_the_next_step_builds_on_the_last_that_was_right(self):
        wrong = self.climb(lambda chosen: ("OK" if chosen.parameters.get("VEC") != 16 else "CRASHED", 10.0, 33, 128))
        self.assertEqual(self.of(wrong, "keys split").verdict, "OK")

    def test_without_a_fastest_it_ends_at_the_plain_mma(self):
        rows = self.climb(goal=None)
        self.assertIn("no fastest", rows[-1].why_not)

    def test_a_fastest_with_wgmma_is_reached_over_the_plain_mma_and_steps_of_its_own(self):
        rows = [row for row in self.climb(goal=HOPPER_GOAL) if row.variant]
        families = list(dict.fromkeys(row.family for row in rows))
        self.assertEqual(families, [SIMT, WMMA, MMA, HOPPER])
        self.assertEqual(self.of(rows, "wgmma").parameters["OVERLAP"], 0)
        self.assertEqual(rows[-1].variant, HOPPER_GOAL.text)
        self.assertNotIn("its place for Q", [row.step for row in rows])


class Around(unittest.TestCase):
    def test_only_what_the_fastest_is_not_already(self):
        rows = list(ladder_steps.around(SPACES[MMA], GOAL, lambda chosen: ("OK", 11.0, 33, 128)))
        names = [row.step for row in rows]
        self.assertIn("Q in registers", names)
        self.assertIn("rescaling in each step", names)
        self.assertNotIn("rescaling when the maximum has grown", names)
        self.assertNotIn("no splits", names)

    def test_neighbours_are_of_the_fastests_family(self):
        rows = list(ladder_steps.around(SPACES[HOPPER], HOPPER_GOAL, lambda chosen: ("OK", 11.0, 33, 128)))
        names = [row.step for row in rows]
        self.assertIn("two consumers", names)
        self.assertIn("weights added up", names)
        self.assertNotIn("three consumers", names)
        self.assertEqual({row.family for row in rows}, {HOPPER})


class Table(unittest.TestCase):
    ROWS = [Row("plain", "a", SIMT, {"VEC": 4}, "OK", 100.0, 8, 90), Row("skipped", why_not="no such variant"),
            Row("wide", "b", SIMT, {"VEC": 16}, "OK", 50.0, 8, 90)]  # fmt: skip

    def test_factors_are_of_the_step_before_the_first_and_flash(self):
        lines = list(ladder_steps.table(self.ROWS, {"flash": 25.0, "cudnn": 20.0}))
        self.assertIn("| wide | VEC 4 to 16 | 50.00 | 2.00x | 2.00x | 0.50x | 8 | 90 |", lines)
        self.assertIn("| skipped | - | no such variant | | | | | |", lines)
        self.assertIn("*cudnn*", lines[-2])

    def test_the_document_names_device_and_command(self):
        rows = [vars(row) for row in self.ROWS]
        each = {"problem": "p", "fastest": "b", "rows": rows, "around": rows[:1], "baselines": {}}
        report = {"name": "x", "device": "GPU", "driver": "1", "date": "2026-11-21 01:00", "command": "c"}
        text = "\n".join(ladder.markdown({**report, "problems": [each]}))
        self.assertIn("GPU, 2026-11-21", text)
        self.assertIn("| plain | VEC 16 to 4 | 100.00 | 2.00x |", text)


if __name__ == "__main__":
    unittest.main()
