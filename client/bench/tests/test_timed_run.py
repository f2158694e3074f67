"""A timed run with a device that is made up: what is written, when, and what a resumed one adds."""

from __future__ import annotations

from unittest.mock import Mock

import pytest
from attune.problem import Problem
from attune.values import Answer, Provenance
from runs import DECODE, PREFILL, header, row, run

from attune_bench.error import BenchError
from attune_bench.jsonl import read_run
from attune_bench.rounds import Rules
from attune_bench.timed_run import TimedRun, served, write_run


def timed_run(tmp_path, left=(PREFILL, DECODE), **fields):
    known = {
        "device": "cuda:0",
        "contestants": header().contestants,
        "problems": [Problem.parse(text) for text in (PREFILL, DECODE)],
        "left": [Problem.parse(text) for text in left],
        "answers": {},
        "row_time": 1.0,
        "heat_time": 0.0,
        "deadline": float("inf"),
        "out": tmp_path,
        "name": "bench",
        "resume": None,
    }
    return TimedRun(**{**known, **fields})


def test_a_run_is_named_for_date_and_device_and_read_back_whole(device, tmp_path):
    path, made = timed_run(tmp_path).run(None)
    assert path.parent == tmp_path and path.name == f"{made.header.date[:10]}-h200-bench.jsonl"
    assert read_run(path) == made
    assert [one.problem for one in made.rows] == [PREFILL, DECODE]


def test_rows_are_heated_and_sampled_for_as_long_as_was_asked(device, tmp_path):
    timed_run(tmp_path, row_time=2.0, heat_time=3.0).run(None)
    assert device.rules == Rules(seconds=2.0, heat_seconds=3.0)


def test_the_rows_before_a_failure_are_kept(device, tmp_path):
    device.fails_at = DECODE
    with pytest.raises(RuntimeError):
        timed_run(tmp_path).run(None)
    (path,) = tmp_path.glob("*.jsonl")
    assert [one.problem for one in read_run(path).rows] == [PREFILL]


def test_the_time_of_a_near_problem_is_not_the_rows():
    answer = Mock(spec=Answer, variant=Mock(text="tiles:BLOCK=16"), geometry=None, timing=Mock(median_us=65.7))
    for provenance, tuned_us in ((Provenance.EXACT, 65.7), (Provenance.NEAREST, 0.0)):
        answer.provenance = provenance
        assert served(answer).tuned_us == tuned_us


def test_no_row_begins_after_the_deadline(device, tmp_path):
    _, made = timed_run(tmp_path, deadline=0.0).run(None)
    assert not device.timed and not made.rows


def test_a_resumed_run_times_only_what_is_left(device, tmp_path):
    path = tmp_path / "2026-11-20-h200-bench.jsonl"
    write_run(path, run(row(PREFILL)))
    found, made = timed_run(tmp_path, left=[DECODE], resume=path).run(read_run(path))
    assert device.timed == [DECODE]
    assert found == path and read_run(path) == made
    assert [one.problem for one in made.rows] == [PREFILL, DECODE]


def test_a_run_is_not_resumed_on_another_device_or_version(device, tmp_path):
    path = tmp_path / "run.jsonl"
    write_run(path, run(row(PREFILL), driver="570.1"))
    with pytest.raises(BenchError, match=r"driver was 570\.1 and is 580\.159\.04"):
        timed_run(tmp_path, left=[DECODE], resume=path).run(read_run(path))
