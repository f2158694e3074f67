"""attune.attention with more than SDPA's arguments, against fp32."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from gpu_problems import DENSE_PROBLEMS, tune_some

import attune
from attune import Problem

torch = pytest.importorskip("torch")

from sequences import check, options_of, random  # noqa: E402

from attune.torch import dispatch, options, replace_sdpa  # noqa: E402
from attune.torch.fallback import Stats  # noqa: E402
from attune.torch.unfused import unfused_attention  # noqa: E402


@pytest.fixture(autouse=True)
def no_grad(service_of_more: attune.Client) -> Iterator[None]:
    with torch.no_grad():
        yield


def inputs(problem: Problem, seed: int = 0) -> list[Any]:
    def tensor(heads: int, length: int, seed: int) -> Any:
        if problem.layout == "bshd":
            return random(problem.batch, length, heads, 64, dtype=problem.dtype, seed=seed).transpose(1, 2)
        return random(problem.batch, heads, length, 64, dtype=problem.dtype, seed=seed)

    of_kv = problem.heads_kv, problem.seq_kv
    return [tensor(problem.heads_q, problem.seq_q, seed), tensor(*of_kv, seed + 1), tensor(*of_kv, seed + 2)]


def launched(q: Any, k: Any, v: Any, given: dict[str, Any]) -> tuple[Any, Any]:
    """Calls attention, and asserts that a kernel computed."""
    stats = Stats()
    asked = options.options_of(False, **given, return_lse=True, scale=None, enable_gqa=True)
    result = dispatch.attend_options(stats, q, k, v, None, 0.0, asked)
    assert (stats.launched, dict(stats.fallbacks)) == (1, {})
    return result


def compare(tensors: list[Any], out: Any, lse: Any, given: dict[str, Any]) -> None:
    by_sequence = [[x[b].transpose(0, 1) for b in range(len(x))] for x in (*tensors, out)]
    check(*by_sequence, list(lse), given)


@pytest.mark.parametrize("lengths", [(113, 203), (203, 113), (1, 1), (239, 1), (799, 3), (1, 700), (1023, 1024)])
@pytest.mark.parametrize("text", DENSE_PROBLEMS)
def test_results_agree_with_fp32(service_of_more: attune.Client, text: str, lengths: tuple[int, int]) -> None:
    rows, keys = lengths
    parts = [{"q113": f"q{rows}", "kv203": f"kv{keys}"}.get(part, part) for part in text.split(".")]
    problem = Problem.parse(".".join(parts))
    if problem.mask == "causal" and "causal-br" in text:
        pytest.skip("with equal lengths it is another problem, which other tests have")
    if problem.layout == "bshd" and lengths == (1, 1):
        pytest.skip("with one row both layouts are the same memory, and the problem is the other's")
    tune_some(service_of_more, problem, max_trials=2)
    tensors, given = inputs(problem), options_of(problem)
    for _ in range(2):
        compare(tensors, *launched(*tensors, given), given)


def test_a_row_that_sees_nothing_is_zero_and_its_lse_minus_infinity_or_the_sink() -> None:
    for text in ("b2.h4.kvh2.q203.kv113.d64.f16.causal-br", "b2.h4.kvh2.q203.kv113.d64.f16.window37.softcap20.sinks"):
        problem = Problem.parse(text)
        given = options_of(problem)
        out, lse = launched(*inputs(problem), given)
        blind = problem.seq_q - problem.seq_kv
        assert not out[:, :, :blind].any()
        expected = torch.full((4,), float("-inf"), device="cuda") if given["sinks"] is None else given["sinks"]
        torch.testing.assert_close(lse[:, :, :blind], expected[None, :, None].expand(2, 4, blind))


def test_without_the_lse_the_result_is_the_same() -> None:
    problem = Problem.parse(DENSE_PROBLEMS[3].replace("q113", "q114"))
    tensors, given = inputs(problem), options_of(problem)
    out, _ = launched(*tensors, given)
    with warnings.catch_warnings():
        warnings.simplefilter("error", attune.AttuneWarning)
        alone = attune.attention(*tensors, enable_gqa=True, **given)
    torch.testing.assert_close(alone, out)


def test_slices_of_a_cache_are_read_where_they_are() -> None:
    problem = Problem.parse(DENSE_PROBLEMS[0])
    q, k, v = inputs(problem)
    cache = random(2, 2, 512, 64, dtype="f16", seed=9)
    cache[:, :, :203] = k
    given = options_of(problem)
    compare([q, k, v], *launched(q, cache[:, :, :203], v, given), given)


@pytest.mark.filterwarnings("ignore::attune.torch.AttuneWarning")
@pytest.mark.parametrize("lengths", [(113, 203), (203, 113), (64, 64)])
@pytest.mark.parametrize("given", [{"window": 9}, {"causal": "top-left", "window": 9}, {"softcap": 3.0}])
def test_without_a_kernel_results_agree_too(given: dict[str, Any], lengths: tuple[int, int]) -> None:
    rows, keys = lengths
    tensors = inputs(Problem(batch=2, heads_q=4, heads_kv=2, seq_q=rows, seq_kv=keys, head_dim=64))
    out, lse = attune.attention(*tensors, enable_gqa=True, return_lse=True, scale=0.125 * (1 + 1e-5), **given)
    compare(tensors, out, lse, given)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_captured_and_replayed(dtype: torch.dtype) -> None:
    problem = Problem.parse(DENSE_PROBLEMS[3])
    tensors, given = inputs(problem), options_of(problem)
    given["sinks"] = given["sinks"].to(dtype)
    launched(*tensors, given)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out, lse = launched(*tensors, given)
    for into, new in zip(tensors, inputs(problem, seed=7), strict=True):
        into.copy_(new)
    given["sinks"].neg_()
    graph.replay()
    compare(tensors, out, lse, {**given, "sinks": given["sinks"].float()})


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_sinks_in_16_bits_are_cast_when_they_are_written_to(dtype: torch.dtype) -> None:
    problem = Problem.parse(DENSE_PROBLEMS[3])
    tensors, given = inputs(problem), options_of(problem)
    sinks = given["sinks"] = torch.nn.Parameter(given["sinks"].to(dtype))
    for _ in range(3):
        compare(tensors, *launched(*tensors, given), {**given, "sinks": sinks.float()})
        sinks.neg_()


def test_compiled_into_one_graph() -> None:
    torch._dynamo.reset()
    problem = Problem.parse(DENSE_PROBLEMS[3])
    given = options_of(problem)

    def block(q: Any, k: Any, v: Any) -> tuple[Any, Any]:
        out, lse = attune.attention(q * 1.0, k, v, enable_gqa=True, return_lse=True, **given)
        return out + 0.0, lse + 0.0

    compiled = torch.compile(block, fullgraph=True)
    for seed in range(3):
        tensors = inputs(problem, seed)
        with replace_sdpa() as replaced:
            compare(tensors, *compiled(*tensors), given)
        assert replaced.stats.launched == 1


def test_kernel_objects_take_sinks(client_of_more: attune.Client, answer: Callable) -> None:
    problem = Problem.parse(DENSE_PROBLEMS[0])
    tensors, given = inputs(problem), options_of(problem)
    out, lse = attune.load(answer(DENSE_PROBLEMS[0]))(*tensors, sinks=given["sinks"])
    compare(tensors, out, lse, given)
    with pytest.raises(attune.InvalidArgument, match="sinks has dtype f16; the problem's is f32"):
        attune.load(answer(DENSE_PROBLEMS[0]))(*tensors, sinks=given["sinks"].half())


@pytest.mark.parametrize("ratio", [0.25, 1.0, 1.5])
def test_another_scale_is_computed_by_the_same_kernel(ratio: float) -> None:
    for text in (DENSE_PROBLEMS[0], DENSE_PROBLEMS[3]):
        problem = Problem.parse(text)
        tensors, given = inputs(problem), options_of(problem)
        stats = Stats()
        asked = options.options_of(False, **given, return_lse=True, scale=ratio / 8, enable_gqa=True)
        out, lse = dispatch.attend_options(stats, *tensors, None, 0.0, asked)
        assert (stats.launched, dict(stats.fallbacks)) == (1, {})
        expected, of_lse = unfused_attention(*tensors, asked)
        torch.testing.assert_close(out.float(), expected.float(), rtol=4e-3, atol=4e-3)
        torch.testing.assert_close(lse, of_lse, rtol=1e-3, atol=1e-3)
