from __future__ import annotations

import pytest
from runs import DECODE, PREFILL, right, row, run

from attune_bench.__main__ import main
from attune_bench.comparison import compare, comparison_text
from attune_bench.timed_run import write_run

PROBLEMS = (PREFILL, DECODE)


def run_with(*times):
    """Attune's times of both problems; flash takes 10 us for each."""
    rows = [
        row(problem, right("attune", us), right("flash", 10.0)) for problem, us in zip(PROBLEMS, times, strict=True)
    ]
    return run(*rows)


def two(first, second):
    return run_with(*first), run_with(*second)


def change_of(contestant, changes):
    return next(change for change in changes if change.contestant == contestant)


def test_a_mean_within_2_percent_agrees():
    change = change_of("attune", compare(*two((10.0, 10.0), (10.1, 10.2))))
    assert change.agrees and change.mean == pytest.approx((1.01 * 1.02) ** 0.5)


def test_a_mean_beyond_2_percent_does_not():
    assert not change_of("attune", compare(*two((10.0, 10.0), (10.3, 10.3)))).agrees
    assert not change_of("attune", compare(*two((10.3, 10.3), (10.0, 10.0)))).agrees


def test_a_problem_that_one_run_lacks_is_a_difference():
    first, second = two((10.0, 10.0), (10.0, 10.0))
    second.rows.pop()
    changes = compare(first, second)
    assert change_of("flash", changes).missing == (DECODE,)
    assert not change_of("flash", changes).agrees
    assert comparison_text(changes).endswith("The runs DO NOT agree within 2 %.")


def test_the_command_ends_with_1_when_the_runs_differ(tmp_path, capsys):
    files = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    for file, made in zip(files, two((10.0, 10.0), (10.1, 11.0)), strict=True):
        write_run(file, made)
    assert main(["--compare", str(files[0]), str(files[0])]) == 0
    assert capsys.readouterr().out.endswith("The runs agree within 2 %.\n")
    assert main(["--compare", *map(str, files)]) == 1
    assert "| attune | 2 | +5.40 % | DIFFERS |" in capsys.readouterr().out


def test_a_file_that_is_not_there_is_said_in_a_line(tmp_path, capsys):
    assert main(["--compare", str(tmp_path / "no.jsonl"), str(tmp_path / "no.jsonl")]) == 1
    assert "no.jsonl" in capsys.readouterr().err
