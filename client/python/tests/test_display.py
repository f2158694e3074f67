"""What a notebook shows."""

from __future__ import annotations

import re

from fake import OPERATION, PROBLEM, VARIANT, answer, message, operation, problem, trial

from attune import values
from attune.table import Table


def text(markup):
    """The words of some HTML, its tags as single spaces."""
    return re.sub(r"(<[^>]*>)+", " ", markup).strip()


def trials(*messages):
    return Table(map(values.Trial.from_message, messages))


def test_an_answer_says_what_is_served_and_against_whom():
    baseline = {"problem": problem(), "contender": "torch-sdpa-flash", "median_us": 82.4}
    best = values.Answer.from_message(answer(provenance_detail="a note", baselines=[baseline]))
    shown = text(best._repr_html_())
    assert f"{PROBLEM} on cuda:0" in shown
    assert "EXACT: a note" in shown
    assert VARIANT["text"] in shown
    assert "41.20 us, 95 % interval 40.90..41.50" in shown
    assert "torch-sdpa-flash 82.40 us (2.00x)" in shown


def test_the_nearest_problems_time_is_not_shown_as_the_answers():
    nearest = answer(provenance=4, provenance_detail="from b1.h1.q61.d64.f16; the server's answer of noon")
    shown = text(values.Answer.from_message(nearest)._repr_html_())
    assert "measured at b1.h1.q61.d64.f16: 41.20 us" in shown
    assert "interval" not in shown
    assert "predicted" not in shown
    nearest.predicted.us, nearest.predicted.low_us, nearest.predicted.high_us = 60, 40, 90
    shown = text(values.Answer.from_message(nearest)._repr_html_())
    assert "predicted 60.00 us (40.00..90.00); measured at b1.h1.q61.d64.f16: 41.20 us" in shown


def test_an_answer_never_timed_shows_no_time():
    heuristic = message("GetBestResponse", problem=problem(), provenance=5, variant=VARIANT)
    assert " us" not in text(values.Answer.from_message(heuristic)._repr_html_())


def test_trials_are_a_table_with_a_row_each():
    shown = trials(trial("trials/1"), trial("trials/2", verdict=4))._repr_html_()
    assert shown.count("<tr>") == 3
    assert f"trials/2 {PROBLEM} WRONG_RESULT 41.20" in text(shown)


def test_a_trial_that_was_not_timed_has_empty_cells():
    crashed = trial("trials/2", verdict=7)
    crashed.ClearField("timing")
    assert "<td>CRASHED</td><td></td>" in trials(crashed)._repr_html_()


def test_no_rows_are_said_to_be_none():
    assert text(Table()._repr_html_()) == "none"


def test_what_a_server_says_is_no_markup():
    evil = trial("<script>alert(1)</script>")
    assert "<script>" not in trials(evil)._repr_html_()


def test_every_kind_of_list_has_its_columns():
    device = values.Device.from_message(message("Device", id="cuda:0", model="NVIDIA L4", compute_units=58))
    assert "cuda:0 NVIDIA L4" in text(Table([device])._repr_html_())
    family = values.KernelFamily.from_message(
        message("KernelFamily", name="attention_simt", parameters=[{"name": "WARPS"}])
    )
    assert "attention_simt" in text(Table([family])._repr_html_())
    incumbent = message("Incumbent", name="incumbents/4", problem=problem(), trial=trial(), why="tuned")
    assert "incumbents/4" in text(Table([values.Incumbent.from_message(incumbent)])._repr_html_())
    baseline = message("Baseline", problem=problem(), contender="torch", median_us=47.0)
    assert "torch 47.00" in text(Table([values.Baseline.from_message(baseline)])._repr_html_())
    miss = message("Miss", problem=problem(), device_id="cuda:0", policy=1, count=7, provenance=4, artifact_state=1)
    assert "cuda:0 HOT 7 NEAREST READY" in text(Table([values.Miss.from_message(miss)])._repr_html_())
    running = values.Operation.from_message(operation(4, error={"message": "no family fits"}))
    assert f"{OPERATION} tune {PROBLEM} FAILED 0/0" in text(Table([running])._repr_html_())


def test_a_host_shows_its_devices_and_what_stands_in_a_back_ends_way():
    backends = [{"backend": 1, "reason": "no driver"}, {"backend": 2, "available": True, "compiler": "PoCL 3.1"}]
    host = message("ListDevicesResponse", devices=[{"id": "opencl:0"}], backends=backends, server_version="0.1.0")
    shown = text(values.Host.from_message(host)._repr_html_())
    for words in ("opencl:0", "attuned 0.1.0", "cuda not in use: no driver", "opencl PoCL 3.1"):
        assert words in shown


def test_an_explanation_lists_its_findings():
    finding = {"bound": 1, "text": "2 CTAs on 58 SMs", "advice": "raise KV_SPLITS"}
    explanation = message("ExplainResponse", trial=trial(), findings=[finding], tflops=1.5, gbs=20.0)
    shown = text(values.Explanation.from_message(explanation)._repr_html_())
    assert "1.5 TFLOP/s, 20 GB/s" in shown
    assert "GRID 2 CTAs on 58 SMs raise KV_SPLITS" in shown


def test_a_sweeps_report_is_its_markdown():
    assert values.SweepReport.from_message(message("SweepReport", markdown="# Sweep"))._repr_markdown_() == "# Sweep"
