"""Evidence of several runs, joined by parts, and what it stands for."""

import pathlib
import tempfile
import unittest

import evidence


class JoinTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = pathlib.Path(directory.name)
        self.write("server/device/cuda/a.cc", "device")
        self.write("server/measure/b.cc", "measure")
        self.write("tests/families/hang_cuda/hang.cu", "family")

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run_of(self, parts, failures=()):
        return {
            "command": "suite.py", "date": "today", "sources": evidence.source_hashes(root=self.root), "parts": parts,
            "failures": list(failures),
        }  # fmt: skip

    def changes(self, joined):
        return list(evidence.changes_of_parts(joined, self.root))

    def joined(self):
        units = self.run_of({"unit_tests": {"a_gpu_test": {}}})
        rest = self.run_of({"sampled": {"problems": {"b1.h1": []}}, "adversarial": {"hang_cuda": ["OK"]}})
        return evidence.join([(rest, ["sampled", "adversarial"]), (units, ["unit_tests"])], self.root)

    def test_parts_of_runs_from_the_same_sources_are_one(self):
        joined = self.joined()
        self.assertEqual(set(joined["parts"]), {"sampled", "adversarial", "unit_tests"})
        self.assertEqual(self.changes(joined), [])

    def test_parts_of_what_was_joined_before_are_of_their_runs(self):
        again = evidence.join([(self.joined(), ["sampled", "unit_tests"])], self.root)
        self.assertEqual([run["parts"] for run in again["runs"]], [["sampled"], ["unit_tests"]])
        self.assertEqual(self.changes(again), [])

    def test_unit_tests_of_the_device_outlast_a_change_elsewhere(self):
        joined = self.joined()
        self.write("server/measure/b.cc", "other")
        self.assertEqual(
            self.changes(joined),
            [f"{part}: server/measure/b.cc: changed since the GPU run" for part in ("sampled", "adversarial")],
        )

    def test_what_tries_many_kernels_outlasts_a_change_of_the_checks_but_not_of_a_kernel(self):
        self.write("kernels_src/attention/a.cu", "kernel")
        parts = ["exhaustive", "as_l4", "l4_grid", "sampled"]
        joined = evidence.join([(self.run_of(dict.fromkeys(parts, {"problems": {"b1.h1": []}})), parts)], self.root)
        self.write("server/verify/c.cc", "new")
        self.assertEqual(self.changes(joined), ["sampled: server/verify/c.cc: not there in the GPU run"])
        self.write("kernels_src/attention/a.cu", "other")
        for part in parts:
            self.assertIn(f"{part}: kernels_src/attention/a.cu: changed since the GPU run", self.changes(joined))

    def test_unit_tests_hold_the_device_to_the_hosts_checks(self):
        joined = self.joined()
        self.write("server/verify/c.cc", "new")
        self.assertIn("unit_tests: server/verify/c.cc: not there in the GPU run", self.changes(joined))

    def test_no_part_outlasts_a_change_of_the_device(self):
        joined = self.joined()
        self.write("server/device/cuda/a.cc", "other")
        self.write("server/device/cuda/c.cc", "new")
        self.assertEqual(len(self.changes(joined)), 2 * 3)

    def test_a_source_that_is_gone_is_a_change(self):
        joined = self.joined()
        (self.root / "server/measure/b.cc").unlink()
        self.assertIn("sampled: server/measure/b.cc: was in the GPU run and is gone", self.changes(joined))

    def test_failures_go_with_their_parts(self):
        parts = {"unit_tests": {"a_gpu_test": {}}, "sampled": {"problems": {"b1.h1": []}}, "adversarial": {"hang_cuda": []}}
        failures = ["a_gpu_test: exit 1", "b1.h1: no variant is OK", "hang_cuda: verdicts are []"]
        run = self.run_of(parts, failures)
        for part, failure in zip(parts, failures, strict=True):
            self.assertEqual(evidence.join([(run, [part])], self.root)["failures"], [failure])

    def test_a_family_that_is_gone_stands_for_nothing(self):
        self.write("tests/families/caches_results_cuda/a.cu", "family")
        run = self.run_of({"adversarial": {"hang_cuda": [], "caches_results_cuda": []}}, ["caches_results_cuda: verdicts"])
        (self.root / "tests/families/caches_results_cuda/a.cu").unlink()
        (self.root / "tests/families/caches_results_cuda").rmdir()
        joined = evidence.join([(run, ["adversarial"])], self.root)
        self.assertEqual((joined["parts"], joined["failures"]), ({"adversarial": {"hang_cuda": []}}, []))
        self.assertEqual(self.changes(joined), [])


if __name__ == "__main__":
    unittest.main()
