"""A real daemon with a GPU, a few problems tuned, and attention computed in fp32 to compare with.

ATTUNE_BUILD is the daemon's build directory; ATTUNE_LIBRARY_PATH the LD_LIBRARY_PATH of the daemon alone.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from gpu_problems import DENSE_PROBLEMS, DEVICE, FAMILIES, PAGED_PROBLEMS, PROBLEMS, VARLEN_PROBLEMS, tune_some

import attune
from attune import Answer, Client, Problem
from attune.background.settings import ACCEPTABLE

WAIT = 120.0  # seconds for an answer: these tests are about what the kernels compute


def _has_gpu() -> bool:
    try:
        import torch
    except ImportError:
        return False
    return torch.cuda.is_available()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not _has_gpu():
        for item in items:
            if item.path.is_relative_to(os.path.dirname(__file__)):
                item.add_marker(pytest.mark.skip(reason="needs torch and a CUDA device"))


@pytest.fixture(scope="session")
def client_of_any(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """Of a daemon that need not have tuned anything."""
    import harness

    libraries = os.environ.get("ATTUNE_LIBRARY_PATH")
    daemon = harness.Daemon(tmp_path_factory.mktemp("daemon"))
    daemon.start({"LD_LIBRARY_PATH": libraries} if libraries else None)
    try:
        with Client(daemon.address) as client:
            yield client
    finally:
        daemon.stop()


@pytest.fixture(scope="session")
def client(client_of_any: Client) -> Client:
    """`client_of_any`, whose daemon has tuned PROBLEMS, each with a small budget."""
    for problem in PROBLEMS:
        tuning = client_of_any.tune(
            problem, device=DEVICE, families=FAMILIES, strategy="random", max_trials=30, max_time=10, seed=1
        )
        tuning.result()
    return client_of_any


@pytest.fixture(scope="session")
def client_of_more(client: Client) -> Client:
    """`client`, whose daemon has also tuned problems with options, varlen and pages."""
    for problem in (*DENSE_PROBLEMS, *VARLEN_PROBLEMS, *PAGED_PROBLEMS):
        tune_some(client, problem)
    return client


@pytest.fixture
def service_of_more(client_of_more: Client) -> Iterator[Client]:
    """attune.attention, attention_varlen and attention_paged ask a daemon that knows more than SDPA's problems. A
    shape whose few trials were all of variants that cannot run has a guess, which must be right, too."""
    acceptable = (*ACCEPTABLE, attune.Provenance.HEURISTIC)
    attune.configure(client_of_more, acceptable=acceptable, wait=WAIT, never_slower=False)
    yield client_of_more
    attune.refresh()


@pytest.fixture
def answer(client: Client) -> Callable[[str], Answer]:
    """The client's answer for a problem, with its artifact."""
    return functools.partial(client.best, device=DEVICE, artifact=True)


@pytest.fixture
def service(client: Client) -> Iterator[Client]:
    """attune.attention asks this daemon, and runs its kernels however long SDPA would take."""
    attune.configure(client, wait=WAIT, never_slower=False)
    yield client
    attune.refresh()


@pytest.fixture
def tensors() -> Callable[[str], tuple[Any, Any, Any]]:
    """Random Q, K and V of a problem on the GPU, in its layout."""
    import torch

    def make(text: str, seed: int = 0) -> tuple[Any, Any, Any]:
        problem = Problem.parse(text)
        generator = torch.Generator("cuda").manual_seed(seed)
        dtype = {"f16": torch.float16, "bf16": torch.bfloat16}[problem.dtype]

        def tensor(heads: int, length: int) -> Any:
            shape = (problem.batch, heads, length, problem.head_dim)
            if problem.layout == "bshd":
                shape = (problem.batch, length, heads, problem.head_dim)
            made = torch.randn(shape, generator=generator, device="cuda").to(dtype)
            return made.transpose(1, 2) if problem.layout == "bshd" else made

        q = tensor(problem.heads_q, problem.seq_q)
        return q, tensor(problem.heads_kv, problem.seq_kv), tensor(problem.heads_kv, problem.seq_kv)

    return make


@pytest.fixture
def check() -> Callable[..., None]:
    """Asserts that `out` (and `lse`) is attention of q, k and v as a problem defines it, computed in fp32."""
    import torch

    def check(text: str, q: Any, k: Any, v: Any, out: Any, lse: Any = None) -> None:
        problem = Problem.parse(text)
        k, v = (x.float().repeat_interleave(problem.heads_q // problem.heads_kv, dim=1) for x in (k, v))
        logits = q.float() @ k.transpose(-1, -2) / problem.head_dim**0.5
        if problem.mask != "none":
            offset = problem.seq_kv - problem.seq_q if problem.mask == "causal-br" else 0
            visible = torch.ones(logits.shape[-2:], dtype=torch.bool, device="cuda").tril(offset)
            logits = logits.masked_fill(~visible, float("-inf"))
        tolerance = {"f16": 2e-3, "bf16": 2e-2}[problem.dtype]
        torch.testing.assert_close(out.float(), logits.softmax(-1).nan_to_num() @ v, rtol=tolerance, atol=tolerance)
        if problem.lse:
            torch.testing.assert_close(lse, logits.logsumexp(-1), rtol=2e-3, atol=2e-3)

    return check
