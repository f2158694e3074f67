"""8-bit keys and values on a GPU, by the families that compute them, against fp32."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from gpu_problems import DEVICE

import attune
from attune import Client, Problem

torch = pytest.importorskip("torch")

from sequences import TOLERANCE, options_of, random  # noqa: E402

from attune.torch import dispatch, options, quantize_kv  # noqa: E402
from attune.torch.fallback import Stats  # noqa: E402

FAMILIES = ("attention_simt", "attention_mma")
PROBLEMS = (
    "b2.h4.kvh2.q113.kv203.d64.f16.kve4m3",
    "b2.h4.kvh2.q64.kv203.d128.bf16.kve5m2.causal-br.bshd",
    "b3.h8.kvh2.q1.kv1000.d128.f16.kve4m3",
)
DTYPES = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}
WAIT = 120.0


@pytest.fixture(scope="module")
def tuned(client_of_any: Client) -> Client:
    """Knows PROBLEMS, from a few variants of each family that computes them."""
    for problem in PROBLEMS:
        for family in FAMILIES:
            try:
                tuning = client_of_any.tune(
                    problem, device=DEVICE, families=[family], strategy="random", max_trials=6, max_time=4, seed=1
                )
                tuning.result()
            except attune.AttuneError as error:
                assert "8-bit caches are not implemented" in str(error)
    return client_of_any


@pytest.fixture(autouse=True)
def service(tuned: Client) -> Iterator[None]:
    attune.configure(tuned, wait=WAIT, never_slower=False)
    with torch.no_grad():
        yield
    attune.refresh()


@pytest.mark.parametrize("problem", PROBLEMS)
def test_every_variant_that_was_tried_is_right(tuned: Client, problem: str) -> None:
    trials = list(tuned.trials(problem=problem))
    assert trials
    assert [(str(t.variant.text), t.detail) for t in trials if t.verdict.name in ("WRONG_RESULT", "CRASHED")] == []


def tensors(problem: Problem, seed: int = 0) -> tuple[Any, Any, Any]:
    """Q, and keys and values in fp32 whose heads differ tenfold."""

    def tensor(heads: int, length: int, seed: int) -> Any:
        made = random(problem.batch, length, heads, problem.head_dim, dtype=problem.dtype, seed=seed)
        return made.transpose(1, 2) if problem.layout == "bshd" else made.transpose(1, 2).contiguous()

    of_heads = torch.logspace(-1, 0, problem.heads_kv, device="cuda").view(-1, 1, 1)
    keys, values = (tensor(problem.heads_kv, problem.seq_kv, seed + n).float() * of_heads for n in (1, 2))
    return tensor(problem.heads_q, problem.seq_q, seed), keys, values


def launched(query: Any, key: Any, value: Any, given: dict[str, Any]) -> Any:
    """Calls attention, and asserts that a kernel computed."""
    stats = Stats()
    asked = options.options_of(
        False, **given, return_lse=False, scale=None, enable_gqa=True, k_scale=key.scale, v_scale=value.scale
    )
    result = dispatch.attend_options(stats, query, key.elements, value.elements, None, 0.0, asked)
    assert (stats.launched, dict(stats.fallbacks)) == (1, {})
    return result


def compare(problem: Problem, query: Any, key: Any, value: Any, out: Any) -> None:
    def wide(cache: Any) -> Any:
        heads = cache.scale.expand(problem.batch, problem.heads_kv)[..., None, None]
        return (cache.elements.float() * heads).repeat_interleave(problem.heads_q // problem.heads_kv, dim=1)

    logits = query.float() @ wide(key).transpose(-1, -2) / problem.head_dim**0.5
    if problem.mask != "none":
        visible = torch.ones(logits.shape[-2:], dtype=torch.bool, device="cuda")
        logits = logits.masked_fill(~visible.tril(problem.seq_kv - problem.seq_q), float("-inf"))
    tolerance = TOLERANCE[query.dtype]
    torch.testing.assert_close(out.float(), logits.softmax(-1) @ wide(value), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("scales", ["tensor", "head", "batch-head"])
@pytest.mark.parametrize("text", PROBLEMS)
def test_one_kernel_reads_scales_however_they_are_shared(text: str, scales: str) -> None:
    problem = Problem.parse(text)
    query, keys, values = tensors(problem)
    key, value = (quantize_kv(x, DTYPES[problem.kv_dtype], scales) for x in (keys, values))
    compare(problem, query, key, value, launched(query, key, value, options_of(problem)))


def test_scales_of_their_own_strides_are_read_where_they_are() -> None:
    problem = Problem.parse(PROBLEMS[0])
    query, keys, values = tensors(problem)
    key, value = (quantize_kv(x, scales="batch-head") for x in (keys, values))
    key = key._replace(scale=key.scale.T.contiguous().T)
    value = value._replace(scale=torch.stack([value.scale, -value.scale], -1)[..., 0])
    compare(problem, query, key, value, launched(query, key, value, options_of(problem)))


def test_captured_and_replayed_with_other_elements_and_scales() -> None:
    problem = Problem.parse(PROBLEMS[2])
    query, *cache = tensors(problem)
    key, value = (quantize_kv(x) for x in cache)
    given = options_of(problem)
    launched(query, key, value, given)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = launched(query, key, value, given)
    _, *others = tensors(problem, seed=7)
    for into, other in zip((key, value), others, strict=True):
        new = quantize_kv(3 * other)
        into.elements.copy_(new.elements)
        into.scale.copy_(new.scale)
    graph.replay()
    compare(problem, query, key, value, out)


@pytest.mark.filterwarnings("ignore::attune.torch.AttuneWarning")
def test_without_a_kernel_results_agree_too() -> None:
    problem = Problem.parse(PROBLEMS[0])
    query, keys, values = tensors(problem)
    key, value = (quantize_kv(x) for x in (keys, values))
    out = attune.attention(
        *(query, key.elements, value.elements),
        k_scale=key.scale,
        v_scale=value.scale,
        scale=0.125 * (1 + 1e-5),
        enable_gqa=True,
    )
    compare(problem, query, key, value, out)
