"""What several play-offs of two variants say together."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import head_to_head
from daemon import ROOT
from head_to_head import answer_of, daemons_answer, gain_of, taken_together


def evaluation(reason, speedup=1.0, contended=False):
    timed = {"contended": contended, "cycles": 3, "latency_ms": 1.0}
    return {
        "type": "evaluation",
        "decision": "REVERT",
        "trial": timed,
        "incumbent": dict(timed),
        "speedup": speedup,
        "reason": reason,
    }


KEPT = "the incumbent is retained at 5.00 us [4.99, 5.01]: "


class Gain(unittest.TestCase):
    def test_middle_and_interval_of_student_s_t(self):
        gain = gain_of([1.01, 1.02, 1.03])
        self.assertAlmostEqual(gain["middle"], 0.02, 4)
        # Logarithms' standard deviation is 0.0098, of their mean 0.00566; 4.303 times that.
        self.assertAlmostEqual(gain["high"] - gain["middle"], 0.0252, 3)
        self.assertAlmostEqual(gain["middle"] - gain["low"], 0.0245, 3)

    def test_one_has_no_interval(self):
        self.assertEqual(gain_of([1.5])["low"], None)
        self.assertAlmostEqual(gain_of([1.5])["middle"], 0.5)

    def test_more_are_surer(self):
        few, many = (gain_of([1.01, 1.02] * times) for times in (1, 5))
        self.assertLess(many["high"] - many["low"], few["high"] - few["low"])

    def test_answers_follow_the_daemon_s_rule(self):
        for low, high, answer in (
            (0.006, 0.03, "FASTER"),
            (0.006, 0.009, "FASTER"),
            (-0.009, 0.009, "SAME"),
            (0.004, 0.02, "UNCLEAR"),
            (-0.03, -0.006, "SLOWER"),
            (-0.03, 0.03, "UNCLEAR"),
            (None, None, "UNCLEAR"),
        ):
            self.assertEqual(answer_of({"low": low, "middle": 0, "high": high}), answer, (low, high))


class DaemonsAnswer(unittest.TestCase):
    """The words are those of server/promotion/promotion.cc."""

    def test_is_read_from_its_reason(self):
        none = "no challenger is faster by more than 0.5 % for certain"
        for reason, answer in (
            ("it is pinned, though the challenger at 4.90 us [4.89, 4.91] is 1.020 times as fast", "FASTER"),
            (f"{none}; statistically tied with 1 other", "SAME"),
            (f"{none}; of 1 it is unclear", "UNCLEAR"),
            (none, "SLOWER"),
            ("another thing", ""),
        ):
            self.assertEqual(daemons_answer(evaluation(KEPT + reason)), answer)

    def test_words_are_those_of_the_source(self):
        source = (ROOT / "server/promotion/promotion.cc").read_text()
        for words in ("it is pinned, though", "statistically tied", "it is unclear", "no challenger is faster"):
            self.assertIn(words, source)

    def test_contended_times_say_nothing(self):
        self.assertEqual(daemons_answer(evaluation("it is pinned, though", contended=True)), "CONTENDED")

    def test_nor_does_one_that_was_not_timed(self):
        self.assertEqual(daemons_answer({**evaluation("WRONG_RESULT: 3 elements"), "speedup": None}), "")
        self.assertEqual(daemons_answer({**evaluation("SLOW: given up"), "incumbent": None}), "")


class Fake:
    """A Setup of which each command has an answer."""

    def __init__(self, *evaluations, pinned="PINNED"):
        self.evaluations, self.pinned, self.asked = list(evaluations), pinned, []

    def ask(self, daemon, *arguments):
        words = [word for word in arguments if not word.startswith("--quiet")]
        self.asked.append(words)
        if words[0] == "serve":
            return [{"type": "evaluation", "decision": self.pinned, "reason": "cannot run"}], ""
        return ([self.evaluations.pop(0)], "") if self.evaluations else ([], "attune: no server")


class Compare(unittest.TestCase):
    def compare(self, fake, count=2, served="a", challenger="b"):
        return head_to_head.compare(fake, None, "p", served, challenger, count)

    def test_pins_what_is_served_and_lets_go_of_it(self):
        fake = Fake(evaluation(KEPT + "statistically tied", 1.001), evaluation(KEPT + "statistically tied", 1.002))
        result = self.compare(fake)
        self.assertEqual([words[:3] for words in fake.asked[:2]], [["serve", "p", "a"], ["evaluate", "p", "b"]])
        self.assertEqual(fake.asked[-1], ["serve", "p", "--unpin"])
        self.assertEqual(result["daemon"], ["SAME", "SAME"])
        self.assertAlmostEqual(result["gain"]["middle"], 0.0015, 6)

    def test_one_variant_is_the_same_without_a_play_off(self):
        fake = Fake()
        self.assertEqual(self.compare(fake, challenger="a")["answer"], "SAME")
        self.assertEqual(fake.asked, [])

    def test_says_why_nothing_was_compared(self):
        self.assertEqual(self.compare(Fake())["error"], "attune: no server")
        self.assertEqual(self.compare(Fake(pinned="REVERT"))["error"], "serve a: cannot run")

    def test_contended_play_offs_do_not_count(self):
        play_offs = [{"answer": "CONTENDED", "ratio": 2.0, "cycles": 3, "reason": "another process"}]
        self.assertEqual(taken_together(play_offs)["error"], "another process")
        counted = {"answer": "SAME", "ratio": 1.0, "cycles": 3, "reason": ""}
        self.assertEqual(taken_together([*play_offs, counted, counted])["gain"]["middle"], 0.0)

    def test_is_told_in_a_cell(self):
        result = taken_together([{"answer": "SAME", "ratio": r, "cycles": 3, "reason": ""} for r in (1.0, 1.002)])
        self.assertEqual(head_to_head.text_of(result), "+0.10 % [-1.16, +1.38] UNCLEAR")
        self.assertEqual(head_to_head.text_of(head_to_head.failed("none")), "not compared: none")


if __name__ == "__main__":
    unittest.main()
