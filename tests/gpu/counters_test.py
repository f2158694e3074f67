"""Counters read from what Nsight Compute prints, and judged."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import counters
import ncu

LISTING = """Device NVIDIA H200 (GH100)
---------------------------------------------- ------- ---------- -----------
Metric Name                                     Metric Type   Metric Unit  Metric Description
---------------------------------------------- ------- ---------- -----------
gpu__time_duration                              Counter       nsecond      incremental duration
sm__pipe_tensor_cycles_active                   Counter       cycle        # of cycles
dram__throughput                                Throughput    %            DRAM throughput
smsp__average_warps_issue_stalled_barrier_per_issue_active Ratio  warps  stalls
"""
METRICS = {
    "us": "gpu__time_duration.sum",
    "DRAM %": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "registers": "launch__registers_per_thread",
}
OUTPUT = f"""==PROF== Connected to process 7
==PROF== Profiling "attention_mma": 0%....100% - 3 passes
"ID","Kernel Name","{METRICS["registers"]}","{METRICS["us"]}","{METRICS["DRAM %"]}"
"","","register/thread","ns","%"
"0","attention_mma(const __half *)","255","1,380,000","12.5"
"1","attention_mma_combine","32","2000","80"
"""


class Metrics(unittest.TestCase):
    def test_only_what_the_device_has_is_asked_for(self):
        metrics = ncu.chosen(ncu.available(LISTING))
        self.assertEqual(metrics["tensor pipe %"], "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active")
        self.assertIn("stall barrier", metrics)
        self.assertNotIn("stall wait", metrics)
        self.assertNotIn("L2 %", metrics)


class Table(unittest.TestCase):
    def test_a_row_is_a_kernel_and_units_are_no_row(self):
        kernels = ncu.parse(OUTPUT, METRICS)
        self.assertEqual(list(kernels), ["attention_mma", "attention_mma_combine"])
        self.assertEqual(kernels["attention_mma"], {"us": 1380.0, "DRAM %": 12.5, "registers": 255.0})

    def test_no_table_is_an_error_with_what_was_printed(self):
        with self.assertRaisesRegex(ValueError, "ERR_NVGPUCTRPERM"):
            ncu.parse("==ERROR== ERR_NVGPUCTRPERM", METRICS)


class Bound(unittest.TestCase):
    STALLS = {"stall wait": 3.0, "stall barrier": 1.0}

    def test_near_a_peak_it_is_that(self):
        self.assertEqual(ncu.bound({"SMs busy %": 99, "DRAM %": 91.2}), "DRAM, at 91 % of its peak")

    def test_far_from_every_peak_it_is_latency_and_the_first_stall(self):
        text = ncu.bound({"SMs busy %": 99, "tensor pipe %": 41, "DRAM %": 4, **self.STALLS})
        self.assertIn("latency: nothing is above 41 %", text)
        self.assertIn("wait (75%", text)

    def test_the_tensor_pipe_is_full_when_what_it_shares_is(self):
        text = ncu.bound({"SMs busy %": 99, "tensor pipe %": 50, "tensor and fp64 %": 84})
        self.assertEqual(text, "the tensor pipe, at 84 % of its peak")

    def test_idle_sms_come_first(self):
        self.assertIn("too few CTAs", ncu.bound({"SMs busy %": 6, "DRAM %": 1, **self.STALLS}))

    def test_stalls_are_shares_most_first(self):
        self.assertEqual(ncu.stalls(self.STALLS), [("wait", 0.75), ("barrier", 0.25)])


class Document(unittest.TestCase):
    def test_what_was_not_counted_is_a_dash(self):
        kernel = {"problem": "p", "variant": "v", "kernel": "k", "counters": {"us": 1.5, "registers": 255.0}}
        report = {"name": "x", "date": "2026-11-21 1", "device": "GPU", "driver": "1", "metrics": METRICS}
        text = "\n".join(counters.markdown({**report, "kernels": [kernel]}))
        self.assertIn("| p | k | 1.5 | - |", text)
        self.assertIn("| 255 |", text)


if __name__ == "__main__":
    unittest.main()
