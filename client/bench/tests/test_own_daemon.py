from __future__ import annotations

import attune
import pytest
from harness import ATTUNED, KERNELS

from attune_bench.daemon import DaemonOptions, daemon_command, running_daemon
from attune_bench.error import BenchError


def options(tmp_path, **fields):
    known = {"attuned": ATTUNED, "data": tmp_path / "data", "lock_dir": tmp_path / "locks", "kernels": str(KERNELS)}
    return DaemonOptions(**{**known, **fields})


def test_the_daemon_gives_the_device_back_at_once(tmp_path):
    command = daemon_command(options(tmp_path), "unix:/tmp/sock")
    assert "--idle_release=500ms" in command
    assert f"--data_dir={tmp_path}/data" in command and f"--lock_dir={tmp_path}/locks" in command


@pytest.mark.skipif(not ATTUNED.exists(), reason=f"no daemon is built at {ATTUNED}")
def test_it_serves_within_the_block_and_not_after_it(tmp_path):
    with running_daemon(options(tmp_path)) as address, attune.Client(address) as client:
        client.ping()
    with attune.Client(address, deadline=1) as client, pytest.raises(attune.Unreachable):
        client.ping()


def test_one_that_does_not_start_is_an_error_with_its_last_words(tmp_path):
    script = tmp_path / "attuned"
    script.write_text("#!/bin/sh\necho no kernels here >&2\nexit 1\n")
    script.chmod(0o755)
    with pytest.raises(BenchError, match="no kernels here"), running_daemon(options(tmp_path, attuned=script)):
        pass


def test_it_alone_sees_its_libraries(tmp_path):
    script = tmp_path / "attuned"
    script.write_text("#!/bin/sh\necho path $LD_LIBRARY_PATH >&2\nexit 1\n")
    script.chmod(0o755)
    with (
        pytest.raises(BenchError, match="path /opt/bundle:/opt/cuda"),
        running_daemon(options(tmp_path, attuned=script, libraries="/opt/bundle:/opt/cuda")),
    ):
        pass
