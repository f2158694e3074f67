"""Caches of several processes on a real daemon: ATTUNE_BUILD is the build directory that has it."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys

import harness
import pytest

# Each line of standard input is a call of attune.blob_cache; its result is a line of standard output.
CACHE = """
import sys
from attune import blob_cache
for line in sys.stdin:
    print(repr(eval(line, vars(blob_cache))))
"""
# Compiles for an H200, which takes no GPU, and says whether Triton found it in its cache.
COMPILE = """
import triton
import triton.language as tl
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

@triton.jit
def double(x, n, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    tl.store(x + at, tl.load(x + at, mask=at < n) * 2.0, mask=at < n)

hits = []
knobs.compilation.listener = lambda **told: hits.append(told["cache_hit"])
signature = {"x": "*fp32", "n": "i32", "block": "constexpr"}
source = ASTSource(fn=double, signature=signature, constexprs={"block": 128})
compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32))
print(hits[0], len(compiled.asm["cubin"]))
"""


class Host:
    """A daemon with tokens of two authors; whoever brings none over TCP is a reader."""

    def __init__(self, directory):
        self.directory = directory
        listen = f"--listen=unix:{directory}/attuned.sock,127.0.0.1:0"
        self.daemon = harness.Daemon(directory, flags=[listen, "--blob_limit=1MiB"]).start()
        self.address = re.search(r"address=\S*(127\.0\.0\.1:\d+)", self.daemon.log).group(1)
        for author in ("ci", "eve"):
            token = self.daemon.attune("token", "create", author, "--role", "author").stdout
            (directory / author).write_text(token)

    def python(self, code, author="", calls="", address=None, **environment):
        """What a process of `author`'s, or of a reader's, prints on standard output and standard error."""
        variables = {**os.environ, "ATTUNE_SERVER": address or self.address, **environment}
        if author:
            variables["ATTUNE_TOKEN_FILE"] = str(self.directory / author)
        ended = subprocess.run(
            [sys.executable, "-c", code],
            input=calls,
            env=variables,
            capture_output=True,
            text=True,
            timeout=harness.PATIENCE,
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout.splitlines(), ended.stderr

    def calls(self, *calls, **options):
        """The values of calls of attune.blob_cache, all of one process; and what its log says."""
        values, log = self.python(CACHE, calls="\n".join(calls), **options)
        return [eval(value) for value in values], log


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    if not harness.ATTUNED.exists():
        pytest.fail(f"'{harness.ATTUNED}' is not there; ATTUNE_BUILD must name a build directory")
    host = Host(tmp_path_factory.mktemp("host"))
    yield host
    host.daemon.stop()


PUT = "put('triton', {key!r}, 'k.cubin', {data!r})"
GET = "get('triton', {key!r}, ['k.cubin'])"


def test_what_an_author_shares_readers_get_who_name_it(host):
    host.calls(PUT.format(key="shared", data=b"ci's"), author="ci", ATTUNE_BLOBS_SHARED="1")
    host.calls(PUT.format(key="shared", data=b"eve's"), author="eve", ATTUNE_BLOBS_SHARED="1")
    get = GET.format(key="shared")
    assert host.calls(get)[0] == [{}]
    assert host.calls(get, ATTUNE_BLOBS_FROM="self,token:ci")[0] == [{"k.cubin": b"ci's"}]
    assert host.calls(get, author="eve")[0] == [{"k.cubin": b"eve's"}]


def test_what_an_author_does_not_share_is_its_own(host):
    host.calls(PUT.format(key="own", data=b"ci's"), author="ci")
    get = GET.format(key="own")
    assert host.calls(get, ATTUNE_BLOBS_FROM="token:ci")[0] == [{}]
    assert host.calls(get, author="ci")[0] == [{"k.cubin": b"ci's"}]


def test_a_reader_puts_nothing_and_goes_on(host):
    put, get = PUT.format(key="reader's", data=b"code"), GET.format(key="reader's")
    values, log = host.calls(put, put, get)
    assert values == [None, None, {}]
    assert log.count("PutBlob needs author") == 1
    assert host.daemon.json("blobs", "--key", "reader's") == []


def test_the_limit_holds_and_the_command_line_lists_and_deletes(host):
    host.calls(*(f"put('triton', 'large {number}', 'k.cubin', bytes(300_000))" for number in range(5)), author="ci")
    totals = host.daemon.json("blobs", "totals", "--principal", "token:ci")
    assert totals[0]["limit_bytes"] == 1 << 20
    assert totals[0]["bytes"] <= 1 << 20
    kept = [blob["key"] for blob in host.daemon.json("blobs", "--principal", "token:ci", "--limit", "0")]
    assert kept[:3] == ["large 4", "large 3", "large 2"]
    deleted = host.daemon.json("blobs", "delete", "--principal", "token:ci", "--key", "large 4")
    assert deleted == [{"type": "deleted_blobs", "blobs": 1, "bytes": 300_000}]
    audited = [json.loads(line) for line in (host.daemon.data / "audit.jsonl").read_text().splitlines()]
    last = audited[-1]
    assert (last["method"], last["resource"], last["outcome"]) == ("DeleteBlobs", "token:ci//large 4", "OK")
    assert "triton/large 3/k.cubin" in [line["resource"] for line in audited if line["method"] == "PutBlob"]


def test_what_was_put_is_there_after_a_restart_and_while_the_daemon_is_gone_nobody_waits(host):
    put, get = PUT.format(key="kept", data=b"code"), GET.format(key="kept")
    local = host.daemon.address
    host.calls(put, address=local)
    host.daemon.kill()
    values, log = host.calls(get, put, get, address=local)
    assert values == [{}, None, {}]
    assert log.count("attune's cache finds nothing; not tried again for 30 s") == 1
    host.daemon.start()
    assert host.calls(get, address=local)[0] == [{"k.cubin": b"code"}]
    host.address = re.search(r"address=\S*(127\.0\.0\.1:\d+)", host.daemon.log).group(1)


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed; tested with 3.9.0")
def test_what_one_process_compiles_with_triton_another_loads(host, tmp_path):
    def compiled(folder, **environment):
        environment = {
            "TRITON_CACHE_MANAGER": "triton.runtime.cache:RemoteCacheManager",
            "TRITON_REMOTE_CACHE_BACKEND": "attune.triton:Backend",
            "TRITON_CACHE_DIR": str(tmp_path / folder),
            **environment,
        }
        file = tmp_path / "double.py"  # Triton reads a kernel's source
        file.write_text(COMPILE)
        (line,), _ = host.python(f"import runpy; runpy.run_path({str(file)!r})", **environment)
        hit, size = line.split()
        return hit == "True", int(size)

    author = {"ATTUNE_TOKEN_FILE": str(host.directory / "ci"), "ATTUNE_BLOBS_SHARED": "1"}
    first = compiled("first", **author)
    assert first[0] is False
    assert compiled("reader", ATTUNE_BLOBS_FROM="token:ci") == (True, first[1])
    assert compiled("stranger")[0] is False
    assert compiled("stranger")[0] is True, "Triton's own folder has it"
