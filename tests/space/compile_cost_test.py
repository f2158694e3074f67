"""What compile_cost.py says of space_report's output."""

import unittest

import compile_cost


def row(variant, registers=100, spill_bytes=0, ctas_per_sm=2):
    values = {"registers": registers, "spill_bytes": spill_bytes, "ctas_per_sm": ctas_per_sm}
    return {"problem": "b1.h1.q1.d64.f16", "variant": variant, **{name: str(value) for name, value in values.items()}}


class CompileCost(unittest.TestCase):
    def test_counts_the_codes_of_all_problems(self):
        line = "| all | attention_mma | 90 | 12 | 0 | 0 | 0 | 255 | 1000 | 0 | 0 |"
        self.assertEqual(compile_cost.codes_of(f"NVIDIA L4 (sm_89)\n\n{line}\n"), 12)

    def test_finds_nothing_where_code_is_alike(self):
        rows = [row("a"), row("b", registers=80)]
        self.assertEqual(compile_cost.changes(rows, list(reversed(rows))), {})

    def test_counts_the_variants_of_each_change(self):
        before = [row("a"), row("b"), row("c")]
        after = [row("a", registers=104), row("b", registers=104, spill_bytes=8), row("c")]
        self.assertEqual(
            compile_cost.changes(before, after), {"registers": [(100, 104, 2)], "spill_bytes": [(0, 8, 1)]}
        )

    def test_tells_more_from_fewer(self):
        found = compile_cost.changes([row("a"), row("b")], [row("a", registers=98), row("b", registers=104)])
        lines = list(compile_cost.summary(found, 2))
        self.assertEqual(lines[0], "- registers: 2 of 2 variants differ, 1 of them more; by -2 to +4")
        self.assertEqual(lines[1], "- spill_bytes: 0 of 2 variants differ")

    def test_refuses_a_variant_that_was_not_there_before(self):
        with self.assertRaises(KeyError):
            compile_cost.changes([row("a")], [row("b")])

    def test_chooses_the_same_variants_each_time(self):
        rows = [row(str(number)) for number in range(50)]
        lines = compile_cost.choose(rows, 5).splitlines()
        self.assertEqual(len(set(lines)), 5)
        self.assertEqual(lines, compile_cost.choose(rows, 5).splitlines())

    def test_chooses_all_where_there_are_no_more(self):
        self.assertEqual(len(compile_cost.choose([row("a"), row("b")], 5).splitlines()), 2)


if __name__ == "__main__":
    unittest.main()
