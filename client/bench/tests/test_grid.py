from __future__ import annotations

import pytest
from attune.problem import Problem

from attune_bench.error import BenchError
from attune_bench.grid import GRID, SMOKE, is_decode, read_problems


def test_the_grid_has_29_prefill_and_9_decode_problems():
    decode = [is_decode(problem) for problem in read_problems(GRID)]
    assert (decode.count(False), decode.count(True)) == (29, 9)


def test_the_grid_is_written_in_canonical_text():
    lines = [line for line in GRID.read_text().splitlines() if line and not line.startswith("#")]
    assert lines == [str(problem) for problem in read_problems(GRID)]


def test_no_problem_of_the_grid_is_causal_over_keys_that_outnumber_its_queries():
    """There the two causal alignments differ, and scaled_dot_product_attention has one of them only."""
    assert not [p for p in read_problems(GRID) if p.mask != "none" and p.seq_q != p.seq_kv]


def test_the_smoke_problems_are_some_of_the_grid():
    assert {Problem.parse(text) for text in SMOKE} <= set(read_problems(GRID))


def test_comments_and_empty_lines_are_no_problems(tmp_path):
    file = tmp_path / "problems"
    file.write_text("# a comment\n\n  b1.h1.q128.d64.f16  # and one behind\n")
    assert read_problems(file) == [Problem.parse("b1.h1.q128.d64.f16")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("b1.h1.q128.d64.f16\nb1.h1.q0.d64.f16\n", ":2: problem 'b1.h1.q0.d64.f16': "),
        ("b1.h1.q128.d64.f16\n\nf16.d64.q128.h1.b1\n", ":3: b1.h1.q128.d64.f16 stands on line 1 already"),
        ("b1.h1.q1.d64.f16.page16\n", ":1: b1.h1.q1.d64.f16.page16 has sinks, varlen or pages"),
        ("b1.h1.q1.d64.f16.kve4m3.sinks\n", ":1: b1.h1.q1.d64.f16.kve4m3.sinks has sinks, varlen or pages"),
        ("# nothing\n", "holds no problem"),
    ],
)
def test_an_error_names_file_and_line(tmp_path, text, message):
    file = tmp_path / "problems"
    file.write_text(text)
    with pytest.raises(BenchError) as error:
        read_problems(file)
    assert str(error.value).startswith(str(file)) and message in str(error.value)
