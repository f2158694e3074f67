"""Triton's and Helion's caches on a server: by their own classes where they are installed, else by their interfaces."""

from __future__ import annotations

import abc
import hashlib
import importlib
import importlib.util
import json
import pathlib
import sys
import types

import grpc
import pytest
from fake import message

from attune import blob_cache

CONFIG = json.dumps({"config": '{"block_sizes": [64]}', "key": {"type": "LooseAutotuneCacheKey", "fields": {}}})


class Files:
    """Answers as a server does that keeps what is put."""

    def __init__(self):
        self.kept = {}

    def put(self, request):
        digest = hashlib.sha256(request.data).hexdigest()
        names = {"namespace": request.namespace, "key": request.key, "file": request.file, "principal": "uid:0"}
        blob = message("Blob", data=request.data, sha256=digest, **names)
        self.kept[request.namespace, request.key, request.file] = blob
        return blob

    def get(self, request):
        found = [self.kept.get((request.namespace, request.key, file)) for file in request.files]
        return message("GetBlobsResponse", blobs=[] if None in found else found)

    def list(self, request):
        found = [blob for blob in reversed(self.kept.values()) if blob.namespace == request.namespace]
        return message("ListBlobsResponse", blobs=found)


@pytest.fixture
def files(server, monkeypatch):
    """What the server of this process keeps."""
    files = Files()
    server.responses |= {"PutBlob": files.put, "GetBlobs": files.get, "ListBlobs": files.list}
    monkeypatch.setenv("ATTUNE_SERVER", server.address)
    monkeypatch.setattr(blob_cache, "_process", blob_cache._Process())
    yield files
    if blob_cache._process.client is not None:
        blob_cache._process.client.close()


def stand_in(monkeypatch, name, **members):
    """A module `name` and those above it, in place of what is not installed."""
    parts = name.split(".")
    for end in range(1, len(parts) + 1):
        monkeypatch.setitem(sys.modules, ".".join(parts[:end]), types.ModuleType(".".join(parts[:end])))
    vars(sys.modules[name]).update(members)


@pytest.fixture
def triton_backend(monkeypatch, tmp_path):
    """attune.triton.Backend. Triton 3.9's interface, where it is not installed."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "triton"))
    if importlib.util.find_spec("triton") is None:

        class RemoteCacheBackend:
            def __init__(self, key: str):
                pass

        class FileCacheManager:
            def __init__(self, key, override=False, dump=False):
                self.folder = tmp_path / "triton" / key
                self.folder.mkdir(parents=True, exist_ok=True)

            def get_file(self, filename):
                path = self.folder / filename
                return str(path) if path.exists() else None

        members = {"RemoteCacheBackend": RemoteCacheBackend, "FileCacheManager": FileCacheManager}
        stand_in(monkeypatch, "triton.runtime.cache", **members)
    monkeypatch.delitem(sys.modules, "attune.triton", raising=False)
    return importlib.import_module("attune.triton").Backend


@pytest.fixture
def helion_backend(monkeypatch):
    """attune.helion.Backend. Helion 1.5's interface, where it is not installed."""
    if importlib.util.find_spec("helion") is None:

        class RemoteCacheBackend(abc.ABC):
            @abc.abstractmethod
            def get(self, key: str) -> str | None: ...

            @abc.abstractmethod
            def put(self, key: str, data: str) -> None: ...

            def list(self, max_results: int | None = None):
                return ()

        stand_in(monkeypatch, "helion.autotuner.remote_cache", RemoteCacheBackend=RemoteCacheBackend)
    monkeypatch.delitem(sys.modules, "attune.helion", raising=False)
    return importlib.import_module("attune.helion").Backend


def test_what_one_backend_of_triton_puts_another_gets(files, triton_backend):
    triton_backend("KEY").put("k.cubin", b"\x7fELF")
    triton_backend("KEY").put("k.json", b"{}")
    assert triton_backend("KEY").get(["k.json", "k.cubin"]) == {"k.json": b"{}", "k.cubin": b"\x7fELF"}
    assert triton_backend("OTHER").get(["k.cubin"]) == {}
    assert [names[:2] for names in files.kept] == [("triton", "KEY")] * 2


def test_a_group_of_which_a_file_is_missing_is_none(files, triton_backend):
    triton_backend("KEY").put("k.json", b"{}")
    assert triton_backend("KEY").get(["k.json", "k.cubin"]) == {}


def test_what_triton_kept_in_its_folder_is_found_while_the_server_is_away(files, server, triton_backend, tmp_path):
    folder = tmp_path / "triton/KEY"
    folder.mkdir(parents=True)
    (folder / "k.cubin").write_bytes(b"local")
    server.fail_next(1, grpc.StatusCode.UNAVAILABLE)
    assert triton_backend("KEY").get(["k.cubin"]) == {"k.cubin": b"local"}
    assert triton_backend("KEY").get(["k.cubin", "k.json"]) == {}
    assert len(server.asked("GetBlobs")) == 1


def test_a_library_is_of_hosts_like_this_one_alone(files, triton_backend, monkeypatch):
    triton_backend("KEY").put("launcher.cpython-311-x86_64-linux-gnu.so", b"library")
    module = sys.modules[triton_backend.__module__]
    assert triton_backend("KEY").get(["launcher.cpython-311-x86_64-linux-gnu.so"])
    monkeypatch.setattr(module.platform, "libc_ver", lambda: ("glibc", "2.17"))
    assert triton_backend("KEY").get(["launcher.cpython-311-x86_64-linux-gnu.so"]) == {}


@pytest.mark.parametrize("name", ["../k.cubin", "/tmp/k.cubin", "a/../../k"])
def test_a_name_that_leaves_tritons_folder_is_not_asked_for(files, server, triton_backend, name):
    assert triton_backend("KEY").get(["k.json", name]) == {}
    assert server.asked("GetBlobs") == []


def test_tritons_own_manager_finds_what_another_process_put(files, triton_backend, monkeypatch, tmp_path):
    cache = sys.modules["triton.runtime.cache"]
    if not hasattr(cache, "RemoteCacheManager"):
        pytest.skip("Triton is not installed; tested with 3.9.0")
    monkeypatch.setenv("TRITON_CACHE_MANAGER", "triton.runtime.cache:RemoteCacheManager")
    monkeypatch.setenv("TRITON_REMOTE_CACHE_BACKEND", "attune.triton:Backend")
    manager = cache.get_cache_manager("ab" * 32)
    assert isinstance(manager, cache.RemoteCacheManager)
    group = {name: manager.put(data, name) for name, data in [("k.json", '{"a": 1}'), ("k.cubin", b"\x7fELF")]}
    manager.put_group("k.json", group)

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "another process's"))
    found = cache.get_cache_manager("ab" * 32).get_group("k.json")
    contents = {name: pathlib.Path(path).read_bytes() for name, path in found.items()}
    assert contents == {"k.json": b'{"a": 1}', "k.cubin": b"\x7fELF"}
    assert all(path.startswith(str(tmp_path / "another")) for path in found.values())
    assert cache.get_cache_manager("cd" * 32).get_group("k.json") is None
    assert cache.get_cache_manager("cd" * 32).get_file("k.cubin") is None


def test_what_one_backend_of_helion_puts_another_gets_and_lists(files, helion_backend):
    assert helion_backend().get("hash") is None
    helion_backend().put("hash", CONFIG)
    second = CONFIG.replace("64", "128")
    helion_backend().put("later", second)
    assert helion_backend().get("hash") == CONFIG
    assert list(helion_backend().list()) == [second, CONFIG]
    assert list(helion_backend().list(max_results=1)) == [second]
    assert list(helion_backend().list(max_results=0)) == []


@pytest.mark.parametrize("data", [b"\xff", b"{", b"[]", b"{}", b'{"config": 7}'])
def test_what_helion_could_not_read_is_a_miss(files, helion_backend, data):
    helion_backend().put("hash", CONFIG)
    names = next(iter(files.kept))
    files.kept[names].data = data
    files.kept[names].sha256 = hashlib.sha256(data).hexdigest()
    assert helion_backend().get("hash") is None
    assert list(helion_backend().list()) == []


def test_helion_goes_on_without_a_server(server, files, helion_backend):
    server.fail_next(4, grpc.StatusCode.UNAVAILABLE)
    helion_backend().put("hash", CONFIG)
    assert helion_backend().get("hash") is None
    assert list(helion_backend().list(max_results=4)) == []


def test_helions_own_loader_takes_the_backend(files, helion_backend, monkeypatch):
    remote = importlib.import_module("helion.autotuner.remote_cache")
    if not hasattr(remote, "_load_remote_backend"):
        pytest.skip("Helion is not installed; tested with 1.5.1")
    monkeypatch.setenv("HELION_REMOTE_CACHE_BACKEND", "attune.helion.Backend")
    backend = remote._load_remote_backend()
    remote._remote_put(backend, "hash", CONFIG)
    assert remote._remote_get(backend, "hash") == CONFIG
