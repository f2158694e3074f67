from __future__ import annotations

import pytest
from runs import DECODE, PREFILL, right, row, run

from attune_bench.documents import write_documents
from attune_bench.error import BenchError
from attune_bench.reference_times import read_reference


def test_document_and_pictures_stand_beside_the_run(tmp_path):
    pytest.importorskip("matplotlib")
    written = write_documents(run(), tmp_path / "2026-11-20-h200-bench.jsonl")
    assert [path.name for path in written] == [
        "2026-11-20-h200-bench.md",
        "2026-11-20-h200-bench-speedup.svg",
        "2026-11-20-h200-bench-roof.svg",
    ]
    assert all(path.stat().st_size > 0 for path in written)


def test_a_picture_names_the_device_and_every_problem(tmp_path):
    matplotlib = pytest.importorskip("matplotlib")
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        write_documents(run(), tmp_path / "run.jsonl")
    picture = (tmp_path / "run-speedup.svg").read_text()
    for text in ("NVIDIA H200, 2026-11-20", PREFILL, DECODE, "flash", "cudnn"):
        assert text in picture


def test_without_attune_there_is_no_picture_of_speedups(tmp_path):
    pytest.importorskip("matplotlib")
    only = row(PREFILL, right("flash", 10.0), served=None)
    written = write_documents(run(only, contestants=("flash",)), tmp_path / "run.jsonl")
    assert [path.name for path in written] == ["run.md", "run-roof.svg"]


def test_earlier_times_are_found_by_the_device(tmp_path):
    (tmp_path / "reference-sdpa-h200.csv").write_text(f"problem,contestant,us\n{PREFILL},flash,13.0\n")
    document, *_ = write_documents(run(), tmp_path / "run.jsonl")
    assert "## Beside earlier figures" in document.read_text()


def test_a_damaged_file_of_earlier_times_is_an_error_that_names_the_line(tmp_path):
    path = tmp_path / "reference.csv"
    path.write_text(f"problem,contestant,us\n{PREFILL},flash,fast\n")
    with pytest.raises(BenchError, match=r"reference\.csv:2: expected are problem, contestant and us"):
        read_reference(path)
