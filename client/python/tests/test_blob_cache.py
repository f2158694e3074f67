"""The caches of other programs: what a process is given when the server is there, away or refuses."""

import hashlib
import logging
import subprocess
import sys

import grpc
import pytest
from fake import error_info, message

from attune import blob_cache


class Time:
    seconds = 1_000.0

    def __call__(self):
        return self.seconds


@pytest.fixture
def time(monkeypatch):
    """Moved by tests alone; the process's first use of the cache."""
    time = Time()
    process = blob_cache._Process()
    away = blob_cache.Away()
    process.reads = blob_cache.Held("finds", away, time)
    process.writes = blob_cache.Held("keeps", away, time)
    monkeypatch.setattr(blob_cache, "_process", process)
    yield time
    if process.client is not None:
        process.client.close()


@pytest.fixture
def cached(server, time, monkeypatch):
    """The server, which has b"code" as file "k" of key "K"."""
    monkeypatch.setenv("ATTUNE_SERVER", server.address)
    code = {"file": "k", "data": b"code", "sha256": hashlib.sha256(b"code").hexdigest(), "principal": "token:ci"}
    server.responses["GetBlobs"] = message("GetBlobsResponse", blobs=[code])
    server.responses["PutBlob"] = message("Blob", file="k")
    return server


def test_files_come_from_the_principals_of_the_environment(cached, monkeypatch):
    assert blob_cache.get("triton", "K", ["k"]) == {"k": b"code"}
    monkeypatch.setenv("ATTUNE_BLOBS_FROM", " token:ci, ,self ")
    assert blob_cache.get("triton", "K", ["k"]) == {"k": b"code"}
    own, others = cached.asked("GetBlobs")
    assert (list(own.principals), list(others.principals)) == (["self"], ["token:ci", "self"])


@pytest.mark.parametrize(("said", "shared"), [("1", True), ("0", False), ("", False), ("token:ci", False)])
def test_what_is_put_is_shared_only_where_the_environment_says_so(cached, monkeypatch, said, shared):
    monkeypatch.setenv("ATTUNE_BLOBS_SHARED", said)
    blob_cache.put("triton", "K", "k", b"code")
    assert cached.asked("PutBlob")[0].shared is shared


def test_a_server_that_is_away_is_a_miss_and_not_asked_again_for_a_while(cached, time, caplog):
    cached.fail_next(1, grpc.StatusCode.UNAVAILABLE)
    with caplog.at_level(logging.WARNING, "attune"):
        for _ in range(5):
            assert blob_cache.get("triton", "K", ["k"]) == {}
            blob_cache.put("triton", "K", "k", b"code")
    assert [name for name, _ in cached.requests] == ["GetBlobs"]
    assert [record.message for record in caplog.records] == [
        f"attune's cache finds nothing; not tried again for 30 s: no server reached at {cached.address}: planned"
    ]
    time.seconds += blob_cache.HOLD_S
    assert blob_cache.get("triton", "K", ["k"]) == {"k": b"code"}


def test_a_server_that_there_is_none_of_is_a_miss(time, monkeypatch, tmp_path):
    monkeypatch.setenv("ATTUNE_SERVER", f"unix:{tmp_path}/none.sock")
    assert blob_cache.get("triton", "K", ["k"]) == {}
    blob_cache.put("triton", "K", "k", b"code")


def test_an_environment_that_makes_no_client_is_a_miss(time, monkeypatch):
    monkeypatch.setenv("ATTUNE_SERVER", "no address")
    assert blob_cache.get("triton", "K", ["k"]) == {}


def test_who_may_not_put_still_gets(cached, caplog):
    cached.fail_next(1, grpc.StatusCode.PERMISSION_DENIED, "PutBlob needs author", error_info("ROLE_TOO_LOW"))
    for _ in range(3):
        blob_cache.put("triton", "K", "k", b"code")
    assert len(cached.asked("PutBlob")) == 1
    assert "PutBlob needs author" in caplog.text
    assert blob_cache.get("triton", "K", ["k"]) == {"k": b"code"}


@pytest.mark.parametrize("code", [grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.RESOURCE_EXHAUSTED])
def test_a_file_that_is_not_taken_keeps_no_other_from_being_put(cached, code):
    cached.fail_next(1, code)
    blob_cache.put("triton", "K", "k", b"code")
    blob_cache.put("triton", "K", "large", bytes(5 << 20))
    blob_cache.put("triton", "K", "k", b"code")
    assert len(cached.asked("PutBlob")) == 2


def test_the_newest_of_each_key_are_listed_of_each_principal(cached, monkeypatch):
    monkeypatch.setenv("ATTUNE_BLOBS_FROM", "self,token:ci")
    entries = [message("Blob", key=key, file=file, principal="token:ci") for key, file in ("1k", "2x", "3k")]
    cached.responses["ListBlobs"] = message("ListBlobsResponse", blobs=entries)
    assert blob_cache.newest("helion", "k", 3) == [b"code"] * 3
    assert [request.key for request in cached.asked("GetBlobs")] == ["1", "3", "1"]
    assert [list(request.principals) for request in cached.asked("GetBlobs")] == [["token:ci"]] * 3


def test_the_child_of_a_fork_waits_for_no_lock_and_makes_a_connection_of_its_own():
    code = """
import os
from attune import blob_cache
parents = blob_cache._process
parents.client = object()
parents.lock.acquire()  # as another thread may hold it at the fork
child = os.fork()
if child == 0:
    own = blob_cache._process
    os._exit(0 if own is not parents and own.client is None and not own.lock.locked() else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), blob_cache._process is parents)
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said == "0 True\n"
