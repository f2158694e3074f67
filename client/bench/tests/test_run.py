"""A whole run against a real daemon on the CPU; only the timing is made up."""

from __future__ import annotations

import re

import attune
import pytest
from harness import ATTUNED, KERNELS, run_attune

from attune_bench.__main__ import main
from attune_bench.daemon import DaemonOptions, running_daemon
from attune_bench.jsonl import read_run
from attune_bench.run import DEADLINE_PASSED

pytestmark = pytest.mark.skipif(not ATTUNED.exists(), reason=f"no daemon is built at {ATTUNED}")

PROBLEM = "b1.h1.q16.d32.f16"


@pytest.fixture
def bench(tmp_path):
    """Runs the command with a daemon of its own; its exit code."""

    def run(*arguments):
        own = [
            "--attuned",
            ATTUNED,
            "--data",
            tmp_path / "data",
            "--kernels",
            KERNELS,
            "--lock-dir",
            tmp_path / "locks",
        ]
        out = ["--device", "opencl:0", "--out", tmp_path / "out", "--contestants", "attune,sdpa,flash,cudnn"]
        return main([str(argument) for argument in (*own, *out, *arguments)])

    return run


def test_one_command_tunes_times_records_and_writes(bench, device, tmp_path):
    assert bench(PROBLEM, "--tune", "--max-time", "1") == 0
    (jsonl,) = (tmp_path / "out").glob("*-h200-bench.jsonl")
    (timed,) = read_run(jsonl).rows
    assert timed.served.variant.startswith("attention_opencl:") and timed.served.provenance in ("EXACT", "TIE")
    assert jsonl.with_suffix(".md").exists()
    daemon = DaemonOptions(ATTUNED, tmp_path / "data", tmp_path / "locks", kernels=str(KERNELS))
    with running_daemon(daemon) as address, attune.Client(address) as client:
        recorded = client.best(PROBLEM, device="opencl:0").baselines
        said = [run_attune("--server", address, *command).stdout for command in (["best", PROBLEM], ["summary"])]
    assert all(re.search(r"\d+\.\d\dx flash", text) for text in said), said
    assert {baseline.contender: baseline.median_us for baseline in recorded} == {
        "sdpa": 15.0,
        "flash": 13.1,
        "cudnn": 9.0,
    }


def test_what_a_deadline_leaves_is_done_by_resuming(bench, device, tmp_path, capsys):
    assert bench(PROBLEM, "--deadline", "0.000001") == DEADLINE_PASSED
    (jsonl,) = (tmp_path / "out").glob("*.jsonl")
    assert f"go on with --resume {jsonl}" in capsys.readouterr().err
    assert bench("--resume", jsonl) == 0
    assert [row.problem for row in read_run(jsonl).rows] == [PROBLEM]


def test_a_device_that_the_daemon_lacks_is_said_in_a_line(bench, device, capsys):
    assert bench(PROBLEM, "--device", "cuda:7") == 1
    assert "--device is cuda:7, which the daemon does not have" in capsys.readouterr().err
