"""The check of docs/faults.md finds rows without a test and names of none."""

import importlib.machinery
import importlib.util
import pathlib
import unittest

PATH = pathlib.Path(__file__).parent / "fault_table"
loader = importlib.machinery.SourceFileLoader("fault_table", str(PATH))
spec = importlib.util.spec_from_loader("fault_table", loader)
fault_table = importlib.util.module_from_spec(spec)
loader.exec_module(fault_table)

TESTS = {"Disk.IsFull", "disk_test.Disk.test_full"}
HEAD = "| fault | outcome | shown by |\n|---|---|---|\n"


class FaultTableTest(unittest.TestCase):
    def test_names_of_either_language_that_exist_are_fine(self):
        self.assertEqual(
            fault_table.mistakes(HEAD + "| full | error | `Disk.IsFull`, `disk_test.Disk.test_full` |\n", TESTS), []
        )

    def test_a_row_without_a_test_and_a_name_of_none_are_found(self):
        text = HEAD + "| full | error | by reading |\n| torn | error | `Disk.IsTorn` |\n"
        self.assertEqual(
            fault_table.mistakes(text, TESTS),
            ["line 3: no test is named for 'full'", "line 4: there is no test Disk.IsTorn"],
        )

    def test_a_document_without_a_table_is_a_mistake(self):
        self.assertTrue(fault_table.mistakes("# Faults\n", TESTS))

    def test_tests_are_found_in_the_sources(self):
        self.assertIn("Durability.OpensAfterAKillDuringTheFirstStart", fault_table.tests_of_cpp(fault_table.ROOT))
        self.assertIn(
            "kill_test.KillTest.test_workers_do_not_outlive_a_killed_daemon",
            fault_table.tests_of_python(fault_table.ROOT),
        )


if __name__ == "__main__":
    unittest.main()
