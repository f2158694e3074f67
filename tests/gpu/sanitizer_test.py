"""What the tools print, understood."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from sanitizer import ERROR_EXIT, parse

CLEAN = "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n"


class Parse(unittest.TestCase):
    def test_clean_is_a_summary_of_no_errors_and_success(self):
        self.assertEqual(parse("memcheck", CLEAN, 0).errors, 0)

    def test_errors_are_counted(self):
        report = parse("memcheck", "Invalid __global__ read\n========= ERROR SUMMARY: 3 errors\n", ERROR_EXIT)
        self.assertEqual(report.errors, 3)
        self.assertIn("Invalid __global__ read", report.text)

    def test_warnings_of_racecheck_are_hazards_too(self):
        text = "========= RACECHECK SUMMARY: 1 hazard displayed (0 errors, 1 warning)\n"
        self.assertEqual(parse("racecheck", text, ERROR_EXIT).errors, 1)

    def test_no_summary_is_no_result(self):
        self.assertIsNone(parse("racecheck", CLEAN, 0).errors)
        self.assertIsNone(parse("memcheck", "cuInit: CUDA_ERROR_NO_DEVICE", 1).errors)

    def test_a_program_that_fails_by_itself_is_no_clean_run(self):
        self.assertIsNone(parse("memcheck", "two runs differ\n" + CLEAN, 1).errors)


if __name__ == "__main__":
    unittest.main()
