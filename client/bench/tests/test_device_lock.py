from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from golden import golden

from attune_bench.device_lock import default_lock_dir, device_lock, lock_file
from attune_bench.error import BenchError


@pytest.mark.parametrize("case", golden("device_lock")["files"], ids=lambda case: case["file"])
def test_the_file_is_the_daemons(case, tmp_path):
    assert lock_file(tmp_path, case["uuid"] or case["id"]).name == case["file"]


@pytest.mark.parametrize("case", golden("device_lock")["directories"])
def test_the_directory_is_the_daemons(case, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0 if case["root"] else 1000)
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    if case["XDG_RUNTIME_DIR"] is not None:
        monkeypatch.setenv("XDG_RUNTIME_DIR", case["XDG_RUNTIME_DIR"])
    assert str(default_lock_dir(Path(case["data"]))) == case["directory"]


@contextmanager
def other_process(path):
    """Another process that holds the lock, as a worker does: its id."""
    script = (
        "import fcntl, sys\n"
        "file = open(sys.argv[1], 'a')\n"
        "fcntl.lockf(file, fcntl.LOCK_EX)\n"
        "print('held', flush=True)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "held\n"
        yield process.pid
        process.stdin.close()


def taken_elsewhere(path):
    """Whether another process could not take the lock."""
    script = "import fcntl, sys; fcntl.lockf(open(sys.argv[1], 'a'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
    return subprocess.run([sys.executable, "-c", script, path], capture_output=True).returncode != 0


def test_while_it_is_held_nobody_else_takes_it(tmp_path):
    path = tmp_path / "locks" / "GPU-1.lock"
    with device_lock(path, patience_s=0):
        assert taken_elsewhere(path)


def test_afterwards_it_is_free(tmp_path):
    path = tmp_path / "GPU-1.lock"
    with device_lock(path, patience_s=0):
        pass
    assert not taken_elsewhere(path)


def test_a_device_that_stays_in_use_is_an_error_that_names_its_user(tmp_path):
    path = tmp_path / "GPU-1.lock"
    with (
        other_process(path) as pid,
        pytest.raises(BenchError, match=f"in use by process {pid}, which holds"),
        device_lock(path, patience_s=0),
    ):
        pass


def test_a_link_in_the_locks_place_is_not_followed(tmp_path):
    path = tmp_path / "GPU-1.lock"
    path.symlink_to(tmp_path / "victim")
    with pytest.raises(OSError), device_lock(path, patience_s=0):
        pass
    assert not (tmp_path / "victim").exists()
