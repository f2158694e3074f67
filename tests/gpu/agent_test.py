"""What the scripted agent changes, what its loops must come to, and the page about them."""

import copy
import pathlib
import unittest

import agent
import agent_report

STARTER = pathlib.Path(__file__).resolve().parents[2] / "client/cli/starter"
BOUND = "too few CTAs: the SMs are busy 3 % of the time"


def step(median_us, decision="KEEP", verdict="OK"):
    trial = {"trial": "trials/1", "verdict": verdict, "time": {"median_us": median_us, "low_us": 1, "high_us": 99}}
    return {
        "hypothesis": "larger tiles",
        "seconds": 1.5,
        "verdict": {"decision": decision, "reason": "why", "problems": [{"trial": trial}]},
        "profile": {"bound": BOUND, "kernels": [{"counters": {"ctas": 128, "sms_busy": 0.034}}]},
        "explain": {"findings": [{"bound": "COUNTERS", "text": BOUND}]},
    }


def loop(*steps):
    listed = [{"iteration": number} for number in range(1, len(steps) + 1)]
    before = {"preflight": {"families": [{"variants": 1200}]}, "best": {"provenance": "HEURISTIC"}, "explain": {}}
    return {
        "problem": "b1",
        "loop": "agent-b1",
        "before": before,
        "steps": list(steps),
        "iterations": listed,
        "summary": listed,
    }


class ChangesTest(unittest.TestCase):
    def test_each_parameter_of_the_last_steps_can_be_varied_around_its_guess(self):
        for folder in ("cuda_3_tensor_cores", "cuda_4_async_copies"):
            manifest = (STARTER / folder / "family.textproto").read_text()
            for name, values, _ in (agent.WARPS, agent.KEYS, agent.ROWS):
                changed = agent.with_values(manifest, name, values)
                self.assertIn(f"values: {values} guess: ", changed)
                guess = int(changed.split(f"values: {values} guess: ")[1].split()[0])
                self.assertIn(guess, values)
                differing = sum(a != b for a, b in zip(manifest.splitlines(), changed.splitlines(), strict=True))
                self.assertEqual(differing, 1)

    def test_a_parameter_that_is_not_there_ends_the_agent(self):
        with self.assertRaises(SystemExit):
            agent.with_values('parameters { name: "WARPS" values: [1] guess: 1 }', "KEYS", [16])

    def test_few_ctas_ask_for_warps_before_larger_tiles(self):
        self.assertEqual(agent.changes(BOUND)[0], agent.WARPS)
        self.assertEqual(agent.changes("mostly latency")[0], agent.ROWS)
        self.assertLessEqual(len(agent.STEPS) + len(agent.changes("")), agent.MOST_SUBMISSIONS)


class FailuresTest(unittest.TestCase):
    def of(self, *steps):
        return agent_report.failures([loop(*steps)], 5, 8)

    def test_nothing_fails_where_the_last_kept_is_fast_enough(self):
        self.assertEqual(self.of(step(40), step(8), step(9, "REVERT")), [])

    def test_what_was_reverted_does_not_count(self):
        self.assertIn("b1: 4.00 times as fast; wanted: 5", self.of(step(40), step(10), step(2, "REVERT")))

    def test_each_must_be_right_with_counters_and_an_explanation(self):
        wrong = step(8, "REVERT", "WRONG_RESULT")
        uncounted, unexplained = step(8), step(8)
        uncounted["profile"] = {"error": "no permission"}
        unexplained["explain"] = {"error": "nothing"}
        lines = self.of(step(40), wrong, uncounted, unexplained)
        self.assertEqual(len(lines), 3)
        self.assertIn("submission 2 is WRONG_RESULT", lines[0])
        self.assertIn("no permission", lines[1])
        self.assertIn("not explained", lines[2])

    def test_eight_are_allowed_and_the_server_must_know_all(self):
        self.assertIn("b1: 9 submissions; allowed: 8", self.of(step(40), *[step(4)] * 8))
        forgetful = loop(step(40), step(4))
        forgetful["iterations"] = []
        self.assertIn("b1: the server has 0 iterations of 2", agent_report.failures([forgetful], 5, 8))

    def test_a_starter_that_was_not_kept_is_no_base(self):
        self.assertEqual(self.of(step(40, "REVERT")), ["b1: the starter was not kept"])
        failed = {"hypothesis": "", "seconds": 0, "verdict": {"error": "refused"}}
        self.assertEqual(self.of(failed), ["b1: the starter was not kept"])


class PageTest(unittest.TestCase):
    def test_it_has_times_counters_and_the_summary_without_diffs(self):
        failed = {"hypothesis": "", "seconds": 0, "verdict": {"error": "refused"}}
        device = {"model": "H200", "sms": 132, "backend": "CUDA"}
        cpu = {"model": "a CPU", "sms": 2, "backend": "OPENCL"}
        found = {
            "devices": [device, cpu],
            "loops": [loop(step(40), step(8), copy.deepcopy(failed))],
            "failed": ["this"],
        }
        summary = "# Loop agent-b1\n\n| a table |\n\n## Times of b1\n\nplot\n\n## Iteration 2, submissions/2\n\n-old\n"
        page = agent_report.markdown(found, {"agent-b1": summary})
        self.assertIn("H200 (132 SMs)", page)
        self.assertNotIn("a CPU", page)
        self.assertIn("| b1 | 3 | 40.00 | 8.00 | 5.00x |", page)
        self.assertIn(f"| 2 | 8.00 | 5.00x | KEEP | 128 |  | 3% |  |  |  |  |  |  | {BOUND} |", page)
        self.assertIn("| 3 |  |  | ERROR |", page)
        self.assertIn("### Times of b1", page)
        self.assertNotIn("-old", page)
        self.assertIn("1,200 variants", page)
        self.assertIn("- this", page)


if __name__ == "__main__":
    unittest.main()
