"""attune.coverage: what it says of a model's calls, what it asks the service, and that torch computes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from answers import answer
from contest_times import baseline, timing
from fake_driver import launch, recipe

import attune
from attune.background import service as asked
from attune.errors import NotFound, Unreachable
from attune.problem import Problem
from attune.values import Answer, ArtifactState, KernelArg, Provenance, Stride, Variant

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from tensors import bounds, half, ints, tensor  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402

from attune.torch.fallback import blocks  # noqa: E402

STRIDES = [KernelArg("I64", 0, Stride(role, dimension)) for role in "QKVO" for dimension in ("BATCH", "HEAD", "ROW")]


class Asked:
    """The service: the problems that it was asked for, and of which device; `answers` by problem, else EXACT ones."""

    def __init__(self) -> None:
        self.problems: list[tuple[str, str | None]] = []
        self.answers: dict[str, Exception | dict[str, Any]] = {}

    def answer(self, service: asked.Service, problem: Problem, index: int) -> Answer:
        self.problems.append((str(problem), service._settings.device))
        given = self.answers.get(str(problem), {})
        if isinstance(given, Exception):
            raise given
        variant = Variant("mma", {}, "mma:BLOCK_M=64")
        fields = {"recipe": recipe(launch("main", *STRIDES)), "artifact_state": ArtifactState.READY, "variant": variant}
        return answer(str(problem), **{**fields, **given})


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[Asked]:
    fake = Asked()
    monkeypatch.setattr(asked.Service, "_ask_without_code", lambda *given: fake.answer(*given))
    attune.configure(attune.Client("unix:/nobody", deadline=1.0), hold=30.0)
    yield fake
    attune.refresh()


class Layer(torch.nn.Module):
    def __init__(self, dtype: torch.dtype = torch.float16) -> None:
        super().__init__()
        self.qkv = torch.nn.Linear(64, 192, dtype=dtype)

    def forward(self, x: torch.Tensor, is_causal: bool = True) -> torch.Tensor:
        q, k, v = (part.unflatten(-1, (2, 32)).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        return F.scaled_dot_product_attention(q, k, v, is_causal=is_causal).transpose(1, 2).flatten(2)


PROBLEM = "b2.h2.q8.d32.f16.causal"


def test_calls_are_grouped_and_each_problem_is_asked_for_once(service: Asked) -> None:
    model = torch.nn.Sequential(Layer(), Layer(), Layer())
    x = half(2, 8, 64)
    with torch.no_grad():
        found = attune.coverage(model, x, device="l4")
        expected = model(x)
        # That it is the model itself that ran:
        outputs = []
        attune.coverage(lambda x: outputs.append(model(x)), x, device="l4")
    assert torch.equal(outputs[0], expected)
    assert service.problems == [(PROBLEM, "l4")] * 2
    (call,) = found.calls
    assert (call.function, str(call.problem), call.count) == ("scaled_dot_product_attention", PROBLEM, 3)
    assert (call.reason, call.provenance, call.variant) == (None, Provenance.EXACT, "mma:BLOCK_M=64")
    assert (found.total, found.launched, found.fallbacks) == (3, 3, {})


def test_two_functions_of_one_problem_are_two_rows_and_one_question(service: Asked) -> None:
    q = half(1, 2, 8, 32)
    found = attune.coverage(lambda: (F.scaled_dot_product_attention(q, q, q), attune.attention(q, q, q)), device="l4")
    assert [call.function for call in found.calls] == ["scaled_dot_product_attention", "attune.attention"]
    assert service.problems == [("b1.h2.q8.d32.f16", "l4")]


def test_what_no_kernel_computes_has_its_reason_and_is_not_asked_for(service: Asked) -> None:
    q, wide = half(1, 2, 8, 32), tensor(1, 2, 8, 32)
    apart = half(1, 2, 16, 64)[..., ::2]

    def model() -> None:
        F.scaled_dot_product_attention(q, q, q)
        F.scaled_dot_product_attention(q, q, q, attn_mask=torch.ones(8, 8, dtype=torch.bool))
        for _ in range(2):
            F.scaled_dot_product_attention(wide, wide, wide)
        F.scaled_dot_product_attention(q, apart, apart)
        F.scaled_dot_product_attention(q, q, q, scale=-0.5)

    found = attune.coverage(model, device="l4")
    assert found.fallbacks == {"attn_mask": 1, "dtype": 2, "layout": 1, "scale": 1}
    assert [problem for problem, _ in service.problems] == ["b1.h2.q8.d32.f16"]
    of_dtype = found.calls[2]
    assert (of_dtype.inputs, of_dtype.problem, of_dtype.count) == (
        "q 1x2x8x32, k 1x2x8x32, v 1x2x8x32, torch.float32",
        None,
        2,
    )
    assert of_dtype.detail.startswith("the inputs are torch.float32")


class Tagged(torch.Tensor):
    pass


def test_each_reason_that_a_call_itself_has_is_found(service: Asked) -> None:
    q, memory = half(1, 2, 8, 32), half(1 + 2 * 8 * 32)

    def model() -> None:
        sdpa = F.scaled_dot_product_attention
        sdpa(q, q, q, dropout_p=0.5)
        sdpa(q, q, q[..., :16])
        sdpa(*[memory[1:].view(1, 2, 8, 32)] * 3)
        sdpa(*[q.as_subclass(Tagged)] * 3)
        attune.attention(q, q[:, :, :4], q[:, :, :4], causal="top-left", window=2)
        packed = memory[1:].view(16, 1, 32)
        attune.attention_varlen(packed, packed, packed, bounds([16]), bounds([16]), 16, 16)

    found = attune.coverage(model, device="l4").fallbacks
    assert found == {"dropout": 1, "shape": 1, "layout": 2, "subclass": 1, "window": 1}
    assert service.problems == []


def test_strides_that_the_answers_kernel_does_not_read_are_a_reason(service: Asked) -> None:
    q, cache = half(1, 2, 1, 32), half(1, 2, 64, 32)
    rows = cache[:, :, :48]
    service.answers["b1.h2.q1.kv48.d32.f16"] = {"recipe": recipe(launch("main", *STRIDES[:3]))}
    found = attune.coverage(
        lambda: (F.scaled_dot_product_attention(q, rows, rows), attune.attention(q, rows.clone(), rows.clone())),
        device="l4",
    )
    assert [(call.reason, str(call.problem)) for call in found.calls] == [
        ("layout", "b1.h2.q1.kv48.d32.f16"),
        (None, "b1.h2.q1.kv48.d32.f16"),
    ]
    assert found.calls[0].detail.startswith("k has 2048 elements from one head to the next; this kernel reads 1536")
    assert len(service.problems) == 1


SCALED = KernelArg("F32", 0.125, max_scale_ratio=1.5)


def test_head_dims_that_no_kernel_takes_are_padded(service: Asked) -> None:
    service.answers["b1.h2.q8.d64.f16"] = {
        "recipe": recipe(launch("main", SCALED)),
        "timing": timing(10.0),
        "baselines": (baseline("sdpa", 1.0, problem=Problem.parse("b1.h2.q8.d64.f16")),),
    }
    q, tokens, pages = half(1, 2, 8, 59), half(8, 2, 59), half(4, 16, 2, 59)

    def model() -> None:
        F.scaled_dot_product_attention(q, q, q)
        F.scaled_dot_product_attention(q, q, q, scale=0.5)
        attune.attention_varlen(tokens, tokens, tokens, bounds([8]), bounds([8]), 8, 8)
        attune.attention_paged(tokens[None], pages, pages, ints([1, 2]), ints(20))

    found = attune.coverage(model, device="l4")
    assert [(str(call.problem), call.reason) for call in found.calls] == [
        ("b1.h2.q8.d59.f16", None),
        ("b1.h2.q8.d59.f16", "scale"),
        ("b1.h2.q8.d59.f16.varlen", "scale"),
        ("None", "shape"),
    ]
    assert found.calls[0].detail == "padded to b1.h2.q8.d64.f16"
    assert found.calls[3].detail == "head_dim is 59; it must be a multiple of 8, as pages are not padded"
    assert [problem for problem, _ in service.problems] == ["b1.h2.q8.d64.f16", "b1.h2.q8.d64.f16.varlen"]


def test_gradients_are_a_reason(service: Asked) -> None:
    q = half(8, 2, 32).requires_grad_()

    def model() -> None:
        Layer()(half(2, 8, 64))
        attune.attention_varlen(q, q, q, bounds([8]), bounds([8]), 8, 8)

    assert attune.coverage(model, device="l4").fallbacks == {"grad": 2}


@pytest.mark.parametrize(
    ("given", "reason", "detail"),
    [
        (NotFound("nothing was tuned"), "no_answer", "nothing was tuned"),
        (Unreachable("nobody answers"), "unreachable", "nobody answers; it is asked again"),
        ({"artifact_state": ArtifactState.COMPILING}, "pending", "the service is compiling the kernel for b2"),
        (
            {"artifact_state": ArtifactState.NONE, "artifact_reason": "it is gone"},
            "not_loaded",
            "no code for b2.* gone",
        ),
    ],
)
def test_an_answer_that_does_not_run_has_its_reason(
    service: Asked, given: Exception | dict, reason: str, detail: str
) -> None:
    service.answers[PROBLEM] = given
    with torch.no_grad():
        found = attune.coverage(Layer(), half(2, 8, 64), device="l4")
    assert found.fallbacks == {reason: 1}
    assert found.calls[0].provenance is (None if isinstance(given, Exception) else Provenance.EXACT)
    with pytest.raises(AssertionError, match=detail):
        raise AssertionError(found.calls[0].detail)


@pytest.mark.parametrize(("never_slower", "fallbacks"), [(True, {"slower": 1}), (False, {})])
def test_a_recorded_sdpa_that_is_faster_is_a_reason(service: Asked, never_slower: bool, fallbacks: dict) -> None:
    attune.configure(attune.Client("unix:/nobody"), never_slower=never_slower)
    recorded = baseline("sdpa", 9.0, problem=attune.Problem.parse(PROBLEM))
    service.answers[PROBLEM] = {"timing": timing(10.0), "baselines": (recorded,)}
    with torch.no_grad():
        found = attune.coverage(Layer(), half(2, 8, 64), device="l4")
    assert found.fallbacks == fallbacks


def test_attunes_own_functions_are_covered(service: Asked) -> None:
    q, pages = half(8, 2, 32), half(4, 16, 2, 32)

    def model() -> torch.Tensor:
        dense = q.transpose(0, 1)[None]
        attune.attention(dense, dense, dense)
        attune.attention(dense, dense, dense, window=4, return_lse=True)
        attune.flash_attn.flash_attn_func(q[None], q[None], q[None], alibi_slopes=torch.ones(2))
        attune.attention_paged(q[None], pages, pages, ints([1, 2]), ints(20), causal="bottom-right")
        return attune.attention_varlen(q, q, q, bounds([3, 5]), bounds([3, 5]), 5, 5)

    outputs = []
    found = attune.coverage(lambda: outputs.append(model()), device="l4")
    assert [(call.function, str(call.problem)) for call in found.calls] == [
        ("attune.attention", "b1.h2.q8.d32.f16.bshd"),
        ("attune.attention", "b1.h2.q8.d32.f16.window4.bshd.lse"),
        ("attune.attention", "None"),
        ("attune.attention_paged", "b1.h2.q8.kv32.d32.f16.causal-br.bshd.page16"),
        ("attune.attention_varlen", "b2.h2.q5.d32.f16.varlen"),
    ]
    assert found.fallbacks == {"attn_mask": 1}
    expected = torch.cat([F.scaled_dot_product_attention(*[x.transpose(0, 1)] * 3) for x in q.float().split([3, 5])], 1)
    torch.testing.assert_close(outputs[0].float(), expected.transpose(0, 1), rtol=1e-2, atol=1e-3)


def test_without_a_device_the_tensors_are_taken_as_they_are(service: Asked) -> None:
    with torch.no_grad():
        assert attune.coverage(Layer(), half(2, 8, 64)).fallbacks == {"device": 1}
    assert service.problems == []


def test_fake_tensors_pass_for_a_gpus(service: Asked) -> None:
    attune.configure(attune.Client("unix:/nobody"), device="l4")
    with FakeTensorMode(), torch.no_grad(), torch.device("cuda:0"):
        q = torch.empty(8, 2, 32, dtype=torch.float16)
        lengths = torch.empty(3, dtype=torch.int32)
        x = torch.empty(2, 8, 64, dtype=torch.float16)
        found = attune.coverage(lambda: (Layer()(x), attune.attention_varlen(q, q, q, lengths, lengths, 5, 5)))
    assert service.problems == [(PROBLEM, "l4"), ("b2.h2.q5.d32.f16.varlen", "l4")]
    assert found.launched == 2


@pytest.mark.parametrize("inputs", [{"x": half(2, 8, 64), "is_causal": False}, (half(2, 8, 64), False)])
def test_inputs_may_be_named_or_in_order(service: Asked, inputs: object) -> None:
    with torch.no_grad():
        (call,) = attune.coverage(Layer(), inputs, device="l4").calls
    assert str(call.problem) == "b2.h2.q8.d32.f16"


def test_an_error_of_the_model_is_raised_and_ends_the_recording(service: Asked) -> None:
    with pytest.raises(ZeroDivisionError):
        attune.coverage(lambda: 1 / 0)
    assert blocks.stats == []
    assert F.scaled_dot_product_attention is torch._C._nn.scaled_dot_product_attention


def test_printed_it_is_a_table(service: Asked) -> None:
    def model(x: torch.Tensor) -> None:
        Layer()(x)
        Layer(torch.float32)(x.float())
        Layer()(x)

    with torch.no_grad():
        printed = str(attune.coverage(model, half(2, 8, 64), device="l4"))
    lines = [line.split() for line in printed.splitlines()]
    assert lines[0] == ["calls", "function", "problem", "runs", "because"]
    assert lines[1] == ["2", "scaled_dot_product_attention", PROBLEM, "attune", "EXACT,", "mma:BLOCK_M=64"]
    assert lines[2][:5] == ["1", "scaled_dot_product_attention", "q", "2x2x8x32,", "k"]
    assert "torch dtype: the inputs are torch.float32" in " ".join(lines[2])
    assert printed.splitlines()[3] == "2 of 3 calls would run attune's kernels"
