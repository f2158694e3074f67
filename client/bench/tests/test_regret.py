"""What the rows of a run of regret come to."""

from __future__ import annotations

from attune_bench.regret import arguments, report, summary


def row(first: float | None, on_miss: float | None = None, provenance: str = "HEURISTIC") -> dict:
    made = {"trials": 50, "first": {"provenance": provenance, "regret": first}}
    return made if on_miss is None else made | {"on_miss": {"provenance": "EXACT", "regret": on_miss}}


def test_median_and_worst_are_of_each_answer():
    found = summary([row(1.0, 1.0), row(1.2, 1.1), row(1.7, 1.02)])
    assert found["first"] == {"shapes": 3, "median": 1.2, "worst": 1.7}
    assert found["on_miss"] == {"shapes": 3, "median": 1.02, "worst": 1.1}


def test_provenances_are_told_apart():
    found = summary([row(1.5), row(1.1, provenance="NEAREST")])
    assert found["first HEURISTIC"]["worst"] == 1.5
    assert found["first NEAREST"]["worst"] == 1.1


def test_an_answer_that_was_not_timed_counts_in_no_median():
    assert summary([row(None), row(1.1)])["first"]["shapes"] == 1


def test_every_shape_is_a_canonical_problem():
    from attune import Problem

    shapes = arguments(["--out", "x"]).problem
    assert [str(Problem.parse(shape)) for shape in shapes] == list(shapes)
    assert len(set(shapes)) == 30


def test_no_rows_have_no_median():
    assert summary([]) == {"shapes": 0}


def test_the_report_says_what_regret_is_held_to():
    given = arguments(["--out", "x", "--strategy", "guided", "--max-trials", "300", "--families", "attention_mma"])
    found = report(given, [row(1.1)])
    assert (found["strategy"], found["max_trials"], found["max_time_s"]) == ("guided", 300, 4.0)
    assert (found["families"], found["summary"]["first"]["worst"]) == (["attention_mma"], 1.1)
