from __future__ import annotations

import dataclasses
import json

import pytest
from runs import DECODE, PREFILL, header, right, row, run, wrong

from attune_bench.error import BenchError
from attune_bench.jsonl import header_line, read_run, row_line
from attune_bench.records import Accuracy, Result, Status


def written(path, made):
    lines = [header_line(made.header), *(row_line(one, made.header.sm_count) for one in made.rows)]
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def figures(one):
    return json.loads(row_line(one, sm_count=132))


def test_what_is_written_is_read_back(tmp_path):
    refused = Result("flash", Status.NOT_APPLICABLE, "has no softcap")
    not_finite = dataclasses.replace(wrong("cudnn", 9.0), accuracy=Accuracy(None, 1e-3, 2))
    made = run(row(PREFILL), row(DECODE, right("attune", 10.0, note="a note"), refused, not_finite, served=None))
    assert read_run(written(tmp_path / "run.jsonl", made)) == made


def test_a_row_has_the_figures_that_people_look_for():
    found = figures(row(PREFILL))
    assert found["latency_ms"] == 0.01
    assert found["speedup_vs_torch"] == 1.5
    assert found["speedup_vs_flash"] == pytest.approx(1.31)
    assert found["speedup_vs_best"] == pytest.approx(0.9)
    assert (found["ctas"], found["sm_count"]) == (256, 132)
    assert found["tflops"] == pytest.approx(4 * 2 * 8 * 512 * 512 * 64 / 10e-6 / 1e12)
    assert found["gbs"] == pytest.approx(4 * 2 * 8 * 512 * 64 * 2 / 10e-6 / 1e9)
    assert found["percent_of_roof"] == pytest.approx(100 * found["roof_us"] / 10.0)


def test_a_wrong_kernel_has_no_speedup():
    found = figures(row(PREFILL, wrong("attune", 1.0), right("flash", 10.0)))
    assert found["latency_ms"] is None and found["speedup_vs_flash"] is None and found["percent_of_roof"] is None


def test_a_wrong_baseline_is_not_compared_with():
    found = figures(row(PREFILL, right("attune", 10.0), wrong("flash", 1.0), right("cudnn", 20.0)))
    assert found["speedup_vs_flash"] is None and found["speedup_vs_best"] == 2.0


def test_a_line_that_a_killed_run_left_half_written_is_dropped(tmp_path):
    path = written(tmp_path / "run.jsonl", run())
    path.write_text(path.read_text()[:-10])
    assert [one.problem for one in read_run(path).rows] == [PREFILL]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no header"),
        ("{}\n", ":1: 'type'"),
        ('{"type": "trial"}\n', ":1: type is 'trial'; it must be 'header' or 'row'"),
        (header_line(header()) + "\nno json\n", ":2: "),
    ],
)
def test_a_damaged_file_is_an_error_that_names_the_line(tmp_path, text, message):
    path = tmp_path / "run.jsonl"
    path.write_text(text)
    with pytest.raises(BenchError) as error:
        read_run(path)
    assert str(error.value).startswith(str(path)) and message in str(error.value)
