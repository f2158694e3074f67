from __future__ import annotations

import pytest
from runs import DECODE, PREFILL, header, right, row, run, wrong

from attune_bench.markdown import figure, table
from attune_bench.records import Result, Status
from attune_bench.reference_times import ReferenceTime
from attune_bench.report import report


def lines_with(text, document):
    return [line for line in document.splitlines() if text in line]


def document(*rows, plots=None, reference=(), **fields):
    return report(run(*rows, **fields), plots or {}, reference)


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, ""), (0, "0"), (4.8512, "4.85"), (12.84, "12.8"), (939.4, "939"), (63412.7, "63413"), (0.0521, "0.0521")],
)
def test_figures_have_three_digits_and_no_powers_of_ten(value, text):
    assert figure(value) == text


def test_a_bar_in_a_cell_does_not_end_it():
    assert table(("a",), [("1 |reference|",)])[2] == "| 1 \\|reference\\| |"


def test_the_document_begins_with_device_date_and_command():
    head = document().partition("## ")[0]
    for text in ("NVIDIA H200, 2026-11-20", "580.159.04", "PyTorch 2.11.0", "`attune-bench --tune`", "1980"):
        assert text in head


def test_each_problem_stands_once_in_its_times_with_the_fastest_bold():
    (line,) = lines_with(f"| {PREFILL} | 10.0", document())
    assert "| 10.0 | 15.0 | 13.1 | **9.00** | 1.50x | 1.31x | 0.90x |" in line


def test_a_wrong_time_is_in_brackets_and_never_the_fastest():
    text = document(row(PREFILL, right("attune", 10.0), wrong("flash", 1.0)))
    (line,) = lines_with(f"| {PREFILL} | **10.0**", text)
    assert "(1.00)" in line
    assert lines_with("3 of 5 elements are off", text)


def test_a_contestant_that_cannot_run_has_its_reason_under_misses():
    refused = Result("flash", Status.NOT_APPLICABLE, "head dimension 512 is above 256")
    misses = document(row(PREFILL, right("attune", 10.0), refused)).partition("## Misses")[2]
    assert lines_with("| flash | not applicable | head dimension 512 is above 256 |", misses)


def test_a_problem_that_the_run_did_not_reach_is_named():
    text = document(row(PREFILL))
    assert "1 of 2, 1 MISSING" in text
    assert lines_with(f"| {DECODE} | all | missing |", text)


def test_a_note_on_a_right_result_is_kept():
    noted = right("flash", 12.0, note="K and V expanded to 32 heads in each call")
    assert lines_with("| note | K and V expanded", document(row(PREFILL, right("attune", 10.0), noted)))


def test_speedups_are_geometric_means_over_what_both_got_right():
    rows = (
        row(PREFILL, right("attune", 10.0), right("flash", 20.0), right("cudnn", 5.0)),
        row(DECODE, right("attune", 10.0), right("flash", 5.0), wrong("cudnn", 5.0)),
    )
    (line,) = lines_with("| all |", document(*rows))
    assert line.startswith("| all |  | 1.00x (2) | 0.50x (1) | 0.50x | 0 of 2 |")


def test_every_right_result_has_a_correctness_figure():
    correctness = document().partition("## Correctness")[2].partition("## ")[0]
    assert lines_with(f"| {PREFILL} | 4.9e-04 | 2.4e-04 | 2.4e-04 | 2.4e-04 | 2.4e-04 |", correctness)


def test_a_run_without_attune_has_no_speedups():
    only = row(PREFILL, right("flash", 10.0), served=None)
    assert "speed-up" not in document(only, contestants=("flash",), problems=(PREFILL,))


def test_earlier_figures_are_compared_and_those_beyond_3_percent_named():
    earlier = [
        ReferenceTime(PREFILL, "flash", 13.0),
        ReferenceTime(PREFILL, "cudnn", 10.0),
        ReferenceTime("b1.h1.q32.d64.f16", "flash", 4.0),
    ]
    text = document(reference=earlier)
    assert "1 of 3 differ" in text
    assert lines_with(f"| {PREFILL} | flash | 13.00 | 13.10 | +0.8 % | agrees |", text)
    assert lines_with(f"| {PREFILL} | cudnn | 10.00 | 9.000 | -10.0 % | DIFFERS |", text)
    assert lines_with("| b1.h1.q32.d64.f16 | flash | 4.000 |  |  | not in this run |", text)


def test_pictures_are_shown():
    assert "![speed-up](run-speedup.svg)" in document(plots={"speed-up": "run-speedup.svg"})


def test_the_device_in_file_names_is_short():
    assert header().slug == "h200"
    assert header(device="NVIDIA RTX 6000 Ada Generation").slug == "rtx-6000-ada-generation"
