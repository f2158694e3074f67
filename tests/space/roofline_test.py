"""The prior's order on cases whose answer is known."""

import dataclasses
import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "golden")]
import roofline
from golden import golden
from roofline import Problem


def parameters(**changes):
    plain = {
        "BLOCK_M": 64,
        "BLOCK_N": 64,
        "WARPS_M": 4,
        "WARPS_N": 1,
        "K_STAGES": 2,
        "V_STAGES": 2,
        "Q_REGISTERS": 0,
        "LAZY_RESCALE": 1,
        "MIN_CTAS": 1,
        "PACK_GQA": 0,
        "KV_SPLITS": 1,
        "PERSISTENT": 0,
    }
    return {**plain, **changes}


class ProblemText(unittest.TestCase):
    def test_lengths_and_heads_follow_the_queries(self):
        problem = Problem("b2.h8.q512.d64.f16")
        self.assertEqual((problem.heads_kv, problem.seq_kv, problem.causal), (8, 512, False))

    def test_names_them_when_they_differ(self):
        problem = Problem("b1.h32.kvh8.q1.kv8192.d128.bf16")
        self.assertEqual((problem.heads_q, problem.heads_kv, problem.seq_q, problem.seq_kv), (32, 8, 1, 8192))

    def test_refuses_what_it_knows_no_times_of(self):
        for rest in ("window64", "varlen", "page16", "causal-br", "kv256.causal"):
            with self.assertRaisesRegex(ValueError, "the prior knows"):
                Problem(f"b1.h8.q128.d64.f16.{rest}")

    def test_bytes_are_the_daemons(self):
        known = 0
        for case in golden("work"):
            try:
                problem = Problem(case["problem"])
            except ValueError:
                continue
            known += 1
            self.assertEqual(problem.least_bytes(), case["bytes"], case["problem"])
        self.assertGreater(known, 5)


class Prior(unittest.TestCase):
    def estimate(self, problem, ctas, shared=32768, **changes):
        return roofline.estimate(Problem(problem), parameters(**changes), ctas, shared)

    def test_large_problems_are_bound_by_tensor_cores_or_shared_memory(self):
        self.assertIn(self.estimate("b4.h16.q4096.d128.f16", 4096).by, ("tensor cores", "shared memory"))

    def test_decoding_a_long_cache_is_bound_by_memory_once_all_sms_read(self):
        problem = Problem("b1.h32.kvh8.q1.kv65536.d128.f16")
        device = dataclasses.replace(roofline.L4, memory_bytes_s=1.5e12)
        decode = {"BLOCK_M": 16, "WARPS_M": 1, "WARPS_N": 4, "PACK_GQA": 1}
        whole = roofline.estimate(problem, parameters(**decode), 8, 69632, device)
        split = roofline.estimate(problem, parameters(KV_SPLITS=7, **decode), 56, 69632, device)
        self.assertNotEqual(whole.by, "memory")
        self.assertEqual(split.by, "memory")

    def test_nothing_is_faster_than_the_devices_peaks(self):
        problem = Problem("b4.h16.q4096.d128.f16")
        flops = 4 * problem.batch * problem.heads_q * problem.seq_q * problem.seq_kv * problem.head_dim
        device = roofline.L4
        peak = device.sms * device.clock_hz * device.tensor_flops
        self.assertGreaterEqual(self.estimate("b4.h16.q4096.d128.f16", 4096).seconds, flops / peak)

    def test_warps_overlap_what_one_warp_a_scheduler_cannot(self):
        four = self.estimate("b4.h16.q4096.d128.f16", 2048, 65536, BLOCK_M=128)
        eight = self.estimate("b4.h16.q4096.d128.f16", 2048, 65536, BLOCK_M=128, WARPS_M=8)
        self.assertLess(eight.seconds, four.seconds)

    def test_half_the_keys_take_about_half_the_time(self):
        full = self.estimate("b4.h16.q4096.d128.f16", 4096).seconds
        causal = self.estimate("b4.h16.q4096.d128.f16.causal", 4096).seconds
        self.assertAlmostEqual(causal / full, 0.5, delta=0.05)


class Order(unittest.TestCase):
    def test_equals_are_told_apart_by_what_hides_latency(self):
        fast = roofline.Estimate(1e-3, "tensor cores", 1e-3)
        slow = roofline.Estimate(1.2e-3, "tensor cores", 1.2e-3)
        lazy, eager, late = parameters(), parameters(LAZY_RESCALE=0), parameters(K_STAGES=3, V_STAGES=3)
        ordered = roofline.order([(late, slow), (eager, fast), (lazy, fast)])
        self.assertEqual([entry[0] for entry in ordered], [lazy, eager, late])

    def test_of_what_waits_for_memory_that_which_leaves_the_sms_room(self):
        busy, free = roofline.Estimate(1e-3, "memory", 0.9e-3), roofline.Estimate(1e-3, "memory", 0.4e-3)
        ordered = roofline.order([(parameters(), busy), (parameters(BLOCK_N=32), free)])
        self.assertEqual(ordered[0][0]["BLOCK_N"], 32)


if __name__ == "__main__":
    unittest.main()
