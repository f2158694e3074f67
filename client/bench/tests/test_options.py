from __future__ import annotations

import pytest

from attune_bench.options import default_contestants, parse
from attune_bench.run import chosen_problems


def refused(capsys, *arguments):
    """What stderr says of a command line that ends with code 2."""
    with pytest.raises(SystemExit) as ended:
        parse(list(arguments))
    assert ended.value.code == 2
    return capsys.readouterr().err


def test_without_arguments_everybody_runs_the_grid():
    options = parse([])
    assert options.contestants == default_contestants()
    assert len(chosen_problems(options)) == 38


def test_problems_may_be_named_listed_in_a_file_or_the_smoke_ones(tmp_path):
    file = tmp_path / "problems"
    file.write_text("b1.h1.q128.d64.f16\n")
    assert [str(p) for p in chosen_problems(parse(["f16.d64.q128.h1.b1"]))] == ["b1.h1.q128.d64.f16"]
    assert [str(p) for p in chosen_problems(parse(["--problems", str(file)]))] == ["b1.h1.q128.d64.f16"]
    assert len(chosen_problems(parse(["--smoke"]))) == 3


def test_baselines_are_recorded_when_a_daemon_takes_part_unless_told_otherwise():
    assert parse([]).record and not parse(["--no-record"]).record
    assert not parse(["--contestants", "flash"]).record and parse(["--contestants", "flash", "--record"]).record


def test_an_unknown_contestant_is_named_with_those_allowed(capsys):
    assert "contestant 'fast' is not known; it must be one of attune" in refused(capsys, "--contestants", "flash,fast")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--smoke", "b1.h1.q128.d64.f16"), "problem and smoke each say what is benched"),
        (("--server", "l4:7411", "--attuned", "attuned"), "--server and --attuned each say which daemon"),
        (("--tune", "--contestants", "flash"), "--tune tunes for the contestant 'attune'"),
        (("--max-time", "0"), "0 is not a positive number of seconds"),
    ],
)
def test_what_contradicts_itself_is_refused(capsys, arguments, message):
    assert message in refused(capsys, *arguments)
