"""Sizes and contents of what a kernel is given."""

import array
import pathlib
import struct
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "golden")]
import buffers
from buffers import Problem
from golden import golden


def ints(data):
    return array.array("i", data).tolist()


class Sizes(unittest.TestCase):
    def test_sequences_are_as_long_as_the_daemons(self):
        for case in golden("work"):
            problem = Problem(case["problem"])
            self.assertEqual((problem.q_lengths(), problem.kv_lengths()), (case["q"], case["kv"]), case["problem"])

    def test_a_plain_problem_has_five_tensors_at_most(self):
        inputs, outputs = buffers.make(Problem("b2.h4.kvh2.q5.kv7.d8.f16.lse"))
        self.assertEqual({role: len(data) for role, data in inputs.items()}, {"Q": 640, "K": 448, "V": 448})
        self.assertEqual(outputs, {"O": 640, "LSE": 160})

    def test_sequences_stand_one_behind_the_other(self):
        inputs, outputs = buffers.make(Problem("b3.h1.q10.kv7.d8.f16.varlen.lse"))
        self.assertEqual(ints(inputs["Q_BOUNDS"]), [0, 10, 17, 21])
        self.assertEqual(ints(inputs["KV_BOUNDS"]), [0, 7, 12, 15])
        self.assertEqual(outputs, {"O": 21 * 8 * 2, "LSE": 21 * 4})

    def test_pages_are_each_used_once_and_nothing_stands_behind_a_sequence(self):
        inputs, _ = buffers.make(Problem("b3.h1.q1.kv40.d8.f16.page16"))
        table = ints(inputs["PAGE_TABLE"])
        self.assertEqual(ints(inputs["KV_LENGTHS"]), [40, 27, 14])
        self.assertEqual(sorted(page for page in table if page >= 0), list(range(6)))
        self.assertEqual([page < 0 for page in table], [False] * 5 + [True, False, True, True])
        self.assertEqual(len(inputs["K"]), 6 * 16 * 8 * 2)

    def test_pages_with_lengths_of_their_own_need_no_kv_bounds(self):
        inputs, _ = buffers.make(Problem("b2.h1.q4.kv40.d8.bf16.sinks.varlen.page16"))
        self.assertEqual(set(inputs), {"Q", "K", "V", "SINKS", "Q_BOUNDS", "KV_LENGTHS", "PAGE_TABLE"})


    def test_keys_and_values_of_8_bits_have_scales_by_sequence_and_head(self):
        inputs, _ = buffers.make(Problem("b2.h4.kvh2.q3.kv5.d8.bf16.kve4m3"))
        self.assertEqual({len(inputs[name]) for name in ("K", "V")}, {2 * 2 * 5 * 8})
        self.assertEqual({len(inputs[name]) for name in ("K_SCALE", "V_SCALE")}, {2 * 2 * 4})

    def test_no_element_of_8_bits_is_nan_or_infinite(self):
        for kv_dtype, last in (("e4m3", 0x7E), ("e5m2", 0x7B)):
            magnitudes = {code & 0x7F for code in buffers.codes(buffers.PATTERN, kv_dtype, 1)}
            self.assertEqual(max(magnitudes), last)


class Elements(unittest.TestCase):
    def test_bf16_is_the_upper_half_of_fp32(self):
        f16 = struct.unpack("<4e", buffers.elements(4, False, 1))
        halves = struct.unpack("<4H", buffers.elements(4, True, 1))
        for value, half in zip(f16, halves):
            self.assertAlmostEqual(struct.unpack("<f", struct.pack("<I", half << 16))[0], value, delta=0.02)

    def test_long_inputs_repeat_a_pattern(self):
        data = buffers.elements(3 * buffers.PATTERN, False, 1)
        self.assertEqual(len(data), 6 * buffers.PATTERN)
        self.assertEqual(data[: 2 * buffers.PATTERN], data[2 * buffers.PATTERN : 4 * buffers.PATTERN])

    def test_nan_is_found_and_infinity_is_not(self):
        self.assertTrue(buffers.has_nan(struct.pack("<2e", 1, float("nan")), "O", False))
        self.assertFalse(buffers.has_nan(struct.pack("<2e", 1, float("inf")), "O", False))
        self.assertFalse(buffers.has_nan(struct.pack("<f", float("-inf")), "LSE", False))
        self.assertTrue(buffers.has_nan(struct.pack("<f", float("nan")), "LSE", False))


if __name__ == "__main__":
    unittest.main()
