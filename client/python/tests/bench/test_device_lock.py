from __future__ import annotations

import fcntl
import os

import pytest

from attune.bench.device_lock import device_lock, lock_file
from attune.bench.error import BenchError


def test_the_file_is_the_daemons(tmp_path):
    assert lock_file(tmp_path, "GPU-12ab-34").name == "GPU-12ab-34.lock"
    assert lock_file(tmp_path, "opencl:0").name == "opencl_0.lock"


def test_who_holds_the_lock_is_written_into_its_file(tmp_path):
    path = tmp_path / "locks" / "GPU-1.lock"
    with device_lock(path, patience_s=0):
        assert path.read_text() == str(os.getpid())


def test_while_it_is_held_nobody_else_takes_it(tmp_path):
    path = tmp_path / "GPU-1.lock"
    with device_lock(path, patience_s=0), path.open("r+") as other, pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_afterwards_it_is_free(tmp_path):
    path = tmp_path / "GPU-1.lock"
    with device_lock(path, patience_s=0):
        pass
    with path.open("r+") as other:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_device_that_stays_in_use_is_an_error_that_names_its_user(tmp_path):
    path = tmp_path / "GPU-1.lock"
    path.write_text("4711")
    with path.open("r+") as other:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with pytest.raises(BenchError, match="in use by process 4711, which holds"), device_lock(path, patience_s=0):
            pass
