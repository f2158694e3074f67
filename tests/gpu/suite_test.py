import unittest

from suite import check_trials, is_unsettled, newest


def trial(variant, verdict, detail=""):
    return {"variant": variant, "verdict": verdict, "detail": detail, "parameters": {}}


UNSETTLED = "its times do not settle: 24.6 to 31.3 us around 24.7 us after 60 samples"


class SuiteTest(unittest.TestCase):
    def test_only_times_that_do_not_settle_are_tried_again(self):
        self.assertTrue(is_unsettled(trial("a", "UNSTABLE", UNSETTLED)))
        self.assertFalse(is_unsettled(trial("a", "UNSTABLE", "gave other bits than the first")))
        self.assertFalse(is_unsettled(trial("a", "OK")))

    def test_a_second_try_stands_for_the_first(self):
        trials = [trial("a", "OK"), trial("b", "OK"), trial("a", "UNSTABLE", UNSETTLED)]
        self.assertEqual(sorted((t["variant"], t["verdict"]) for t in newest(trials)), [("a", "OK"), ("b", "OK")])

    def test_what_does_not_settle_twice_is_a_failure(self):
        failures = []
        check_trials("p", newest([trial("a", "UNSTABLE", UNSETTLED), trial("b", "OK"), trial("a", "UNSTABLE", UNSETTLED)]), failures)
        self.assertEqual(failures, [f"p: a is UNSTABLE: {UNSETTLED}"])


if __name__ == "__main__":
    unittest.main()
