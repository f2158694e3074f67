"""attune.attention with more than SDPA's arguments: what is asked of a kernel, and what is computed without one."""

from __future__ import annotations

import itertools

import pytest
from definition import attention as defined
from fake_service import Service

from attune.errors import FailedPrecondition, InvalidArgument, NotFound

torch = pytest.importorskip("torch")

from tensors import half, tensor  # noqa: E402

import attune.torch  # noqa: E402
from attune.torch import AttuneWarning, attention, dispatch, unfused  # noqa: E402
from attune.torch.dispatch import attend_options  # noqa: E402
from attune.torch.fallback import Stats  # noqa: E402
from attune.torch.options import Options  # noqa: E402

FALLS_BACK = pytest.mark.filterwarnings("ignore::attune.torch.AttuneWarning")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"causal": "top-left"}, "b1.h2.q8.kv12.d64.f16.causal"),
        ({"causal": "bottom-right"}, "b1.h2.q8.kv12.d64.f16.causal-br"),
        ({"window": 4}, "b1.h2.q8.kv12.d64.f16.window4"),
        ({"window": 4, "causal": "bottom-right"}, "b1.h2.q8.kv12.d64.f16.window4"),
        ({"softcap": 30}, "b1.h2.q8.kv12.d64.f16.softcap30"),
        ({"sinks": torch.zeros(2)}, "b1.h2.q8.kv12.d64.f16.sinks"),
        ({"return_lse": True, "is_causal": True}, "b1.h2.q8.kv12.d64.f16.causal.lse"),
        (
            {"return_lse": True, "sinks": torch.zeros(2), "softcap": 0.5, "window": 1},
            "b1.h2.q8.kv12.d64.f16.window1.softcap0.5.sinks.lse",
        ),
    ],
)
def test_options_become_the_problem(service: Service, options: dict, text: str) -> None:
    kv = half(1, 2, 12, 64)
    attention(half(1, 2, 8, 64), kv, kv, **options)
    assert service.problems == [text]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"causal": "bottom-right"}, "b1.h2.q8.d64.f16.causal"),
        ({"causal": "top-left", "window": 3}, "b1.h2.q8.d64.f16.window3"),
        ({"is_causal": True, "window": 3}, "b1.h2.q8.d64.f16.window3"),
    ],
)
def test_with_equal_lengths_both_alignments_are_one(service: Service, options: dict, text: str) -> None:
    q = half(1, 2, 8, 64)
    attention(q, q, q, **options)
    assert service.problems == [text]


def test_a_launch_gets_the_sinks_and_the_lse(service: Service) -> None:
    q, sinks = half(1, 2, 8, 64), torch.zeros(2)
    for _ in range(2):
        out, lse = attention(q, q, q, sinks=sinks, return_lse=True)
        address = q.data_ptr()
        *others, more = service.launches[-1]
        assert others == [address, address, address, out.data_ptr(), lse.data_ptr(), 5]
        assert [*more] == [sinks.data_ptr(), *6 * (0,)]
    assert (lse.shape, lse.dtype) == ((1, 2, 8), torch.float32)
    assert len(service.problems) == 1


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The calls that were not launched at once."""
    calls: list[object] = []
    attend_call = dispatch.attend_call
    monkeypatch.setattr(dispatch, "attend_call", lambda *given: calls.append(given) or attend_call(*given))
    return calls


def test_a_known_kind_of_call_is_launched_at_once(service: Service, looked_at: list[object]) -> None:
    stats = Stats()
    for seed in (1, 2):
        q = tensor(1, 2, 8, 64, dtype=torch.float16, seed=seed)
        out, lse = attend_options(stats, q, q, q, None, 0.0, Options(softcap=2.0, return_lse=True))
        address = q.data_ptr()
        assert service.launches[-1][:6] == (address, address, address, out.data_ptr(), lse.data_ptr(), 5)
        assert (out.shape, lse.shape, lse.dtype) == (q.shape, q.shape[:3], torch.float32)
    assert (stats.launched, len(looked_at)) == (2, 1)


@pytest.mark.parametrize("other", [{"softcap": 3.0}, {"window": 4}, {"return_lse": True}, {"causal": "top-left"}])
def test_calls_with_other_options_are_of_another_kind(service: Service, looked_at: list[object], other: dict) -> None:
    q = half(1, 2, 8, 64)
    attention(q, q, q, softcap=2.0)
    attention(q, q, q, **{"softcap": 2.0, **other})
    assert (len(looked_at), len(service.problems)) == (2, 2)


@FALLS_BACK
def test_a_known_kind_of_call_whose_kernel_is_refused_is_looked_at_again(
    service: Service, looked_at: list[object]
) -> None:
    service.launching_fails_with = FailedPrecondition("the driver is gone")
    q, stats = half(1, 2, 8, 64), Stats()
    for _ in range(2):
        out = attend_options(stats, q, q, q, None, 0.0, Options(softcap=2.0))
    assert (out.shape, stats.launched, stats.fallbacks) == (q.shape, 0, {"not_launched": 2})


@FALLS_BACK
def test_a_known_kind_of_call_at_another_address_is_looked_at_again(service: Service, looked_at: list[object]) -> None:
    stats = Stats()
    for q in (half(1, 2, 8, 64), half(1 + 2 * 8 * 64)[1:].view(1, 2, 8, 64)):
        attend_options(stats, q, q, q, None, 0.0, Options(softcap=2.0))
    assert (stats.launched, stats.fallbacks, len(looked_at)) == (1, {"layout": 1}, 2)


def test_inputs_without_heads_have_one_sink(service: Service) -> None:
    q = half(3, 8, 64)
    out, lse = attention(q, q, q, sinks=torch.zeros(1), return_lse=True)
    assert (out.shape, lse.shape) == ((3, 8, 64), (3, 8))
    assert service.problems == ["b3.h1.q8.d64.f16.sinks.lse"]


def test_transposed_views_are_read_in_place(service: Service) -> None:
    q = half(2, 16, 4, 64).transpose(1, 2)
    out = attention(q, q, q, softcap=2.0)
    assert service.problems == ["b2.h4.q16.d64.f16.softcap2.bshd"]
    assert service.launches[0][0] == q.data_ptr()
    assert out.stride() == q.stride()


def test_other_strides_are_read_in_place(service: Service) -> None:
    q, kv = half(1, 2, 8, 64), half(1, 2, 16, 64)[:, :, ::2]
    attention(q, kv, kv, softcap=2.0)
    assert service.launches[0][1:3] == (kv.data_ptr(), kv.data_ptr())
    assert service.placements == [((1024, 512, 64), (2048, 1024, 128), (2048, 1024, 128), (1024, 512, 64))]


CASES = [
    dict(zip(("causal", "window", "softcap", "sinks"), case, strict=True))
    for case in itertools.product(
        (None, "top-left", "bottom-right"), (None, 1, 5), (0.0, 3.0), (None, torch.tensor([0.5, -1.0, 2.0, 0.0]))
    )
    if not (case[0] is None and case[1] is not None)
]


def compared(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, options: dict) -> None:
    """Asserts that attention of [batch, heads, length, head_dim] is what the definition says, sequence by sequence."""
    out, lse = attention(q, k, v, enable_gqa=True, return_lse=True, **options)
    for b in range(q.shape[0]):
        rows, of_rows = defined(*(x[b].transpose(0, 1) for x in (q, k, v)), **options)
        torch.testing.assert_close(out[b].transpose(0, 1).float(), rows, rtol=2e-3, atol=2e-3)
        torch.testing.assert_close(lse[b], of_rows, rtol=2e-3, atol=2e-3)
    alone = attention(q, k, v, enable_gqa=True, **options)
    torch.testing.assert_close(alone, out, rtol=2e-3, atol=2e-3)


@FALLS_BACK
@pytest.mark.parametrize("lengths", [(1, 1), (7, 7), (5, 11), (11, 5), (3, 1), (1, 9)])
@pytest.mark.parametrize("options", CASES)
def test_without_a_kernel_the_result_is_the_definitions(options: dict, lengths: tuple[int, int]) -> None:
    rows, keys = lengths
    compared(tensor(2, 4, rows, 16), tensor(2, 2, keys, 16, seed=2), tensor(2, 2, keys, 16, seed=3), options)


@FALLS_BACK
@pytest.mark.parametrize("options", CASES)
def test_in_parts_it_is_the_same(monkeypatch: pytest.MonkeyPatch, options: dict) -> None:
    monkeypatch.setattr(unfused, "_MOST_LOGITS", 64)
    compared(tensor(2, 4, 13, 16), tensor(2, 2, 21, 16, seed=2), tensor(2, 2, 21, 16, seed=3), options)


@FALLS_BACK
def test_half_precision_gives_half_precision() -> None:
    q = half(1, 2, 8, 64)
    out, lse = attention(q, q, q, softcap=2.0, return_lse=True)
    assert (out.dtype, lse.dtype) == (torch.float16, torch.float32)


@FALLS_BACK
def test_masks_and_other_scales_go_together_with_the_rest() -> None:
    q, k = tensor(2, 4, 5, 16), tensor(2, 4, 7, 16, seed=2)
    mask = torch.rand(2, 1, 5, 7) > 0.3
    out = attention(q, k, k, mask, scale=0.3, sinks=torch.zeros(4))
    logits = (q @ k.transpose(-1, -2) * 0.3).masked_fill(~mask, float("-inf"))
    weights = torch.cat([logits, torch.zeros(2, 4, 5, 1)], -1).softmax(-1)[..., :-1]
    torch.testing.assert_close(out, weights @ k)
    bias = torch.where(mask, 0.0, float("-inf"))
    torch.testing.assert_close(attention(q, k, k, bias, scale=0.3, sinks=torch.zeros(4)), out)


@FALLS_BACK
@pytest.mark.parametrize("lengths", [(4, 6), (6, 4)])
def test_gradients_flow_and_are_finite_where_rows_see_nothing(lengths: tuple[int, int]) -> None:
    rows, keys = lengths
    q, k = tensor(1, 2, rows, 8, dtype=torch.float64), tensor(1, 2, keys, 8, dtype=torch.float64, seed=2)
    sinks = torch.zeros(2)
    inputs = [x.requires_grad_() for x in (q, k, sinks)]
    out, lse = attention(q, k, k, causal="bottom-right", softcap=2.0, return_lse=True)
    (out.sum() + lse[lse.isfinite()].sum()).backward()
    attention(q, k, k, causal="bottom-right", sinks=sinks).sum().backward()
    assert all(x.grad.isfinite().all() for x in inputs)


def options_fallen_back(*tensors: torch.Tensor, dropout_p: float = 0.0, **options: object) -> dict[str, int]:
    stats = Stats()
    attend_options(stats, *tensors, None, dropout_p, Options(**options))
    return dict(stats.fallbacks)


@FALLS_BACK
def test_reasons_are_counted(service: Service) -> None:
    q, k = half(1, 2, 8, 64), half(1, 2, 12, 64)
    assert options_fallen_back(q, k, k, softcap=2.0, scale=-0.5) == {"scale": 1}
    assert options_fallen_back(q, k, k, softcap=2.0, dropout_p=0.5) == {"dropout": 1}
    assert options_fallen_back(q, k, k, causal="top-left", window=3) == {"window": 1}
    assert options_fallen_back(*[x.float() for x in (q, k, k)], softcap=2.0) == {"dtype": 1}
    assert options_fallen_back(q, k, k[..., :60], softcap=2.0) == {"shape": 1}
    assert options_fallen_back(q, k, k, softcap=2.0, sinks=torch.nn.Parameter(torch.zeros(2))) == {"grad": 1}
    assert service.problems == []


@FALLS_BACK
@pytest.mark.parametrize("shape", [(0, 2, 8, 64), (1, 0, 8, 64), (1, 2, 0, 64)])
@pytest.mark.parametrize("options", CASES)
def test_empty_tensors_give_empty_results(service: Service, shape: tuple[int, ...], options: dict) -> None:
    q, sinks = half(*shape), None if options["sinks"] is None else torch.zeros(shape[1])
    out, lse = attention(q, q, q, return_lse=True, **{**options, "sinks": sinks})
    assert (out.shape, lse.shape, lse.dtype) == (q.shape, shape[:3], torch.float32)
    assert service.problems == []


@FALLS_BACK
@pytest.mark.parametrize("options", CASES)
def test_rows_without_keys_are_zero_and_ask_nobody(service: Service, options: dict) -> None:
    q, kv = half(1, 4, 8, 64), half(1, 4, 0, 64)
    assert not attention(q, kv, kv, **options).any()
    out, lse = attention(q, kv, kv, return_lse=True, **options)
    sinks = options["sinks"]
    expected = torch.full((1, 4, 8), -torch.inf) if sinks is None else sinks.view(1, 4, 1).expand(1, 4, 8)
    assert not out.any() and torch.equal(lse, expected)
    assert options_fallen_back(q, kv, kv, return_lse=True) == {"shape": 1}
    assert service.problems == []


@FALLS_BACK
@pytest.mark.parametrize("lengths", [(6, 6), (4, 6)])
@pytest.mark.parametrize("causal", ["top-left", "bottom-right"])
def test_a_mask_goes_together_with_causal_at_all_lengths(causal: str, lengths: tuple[int, int]) -> None:
    rows, keys = lengths
    q, k = tensor(1, 2, rows, 16), tensor(1, 2, keys, 16, seed=2)
    mask = torch.rand(rows, keys, generator=torch.Generator().manual_seed(3)) > 0.3
    mask[:, 0] = True
    seen = torch.ones(rows, keys, dtype=torch.bool).tril(keys - rows if causal == "bottom-right" else 0)
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, k, mask & seen)
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):  # which refuses both at once
        result = attention(q, k, k, mask, causal=causal)
    torch.testing.assert_close(result, expected)


@FALLS_BACK
def test_a_problem_without_an_answer_is_held(service: Service) -> None:
    q = half(1, 2, 8, 64)
    service.refuses_with = NotFound("no answer")
    for _ in range(3):
        assert options_fallen_back(q, q, q, softcap=2.0) == {"no_answer": 1}
    assert len(service.problems) == 1


def test_the_warning_is_the_callers() -> None:
    attune.torch.configure()
    q = tensor(1, 2, 8, 64)
    with pytest.warns(AttuneWarning, match=r"attune\.attention runs torch's SDPA or, where .* \(device\)") as given:
        attention(q, q, q, softcap=2.0)
    assert given[0].filename == __file__


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"causal": "left"}, "causal is 'left'; it must be None, 'top-left' or 'bottom-right'"),
        ({"causal": "bottom-right", "is_causal": True}, "causal is 'bottom-right' and is_causal is True"),
        ({"window": 0}, "window is 0; it must be None or a positive integer"),
        ({"window": 2.5}, "window is 2.5; it must be"),
        ({"softcap": -1.0}, "softcap is -1.0; it must be 0"),
        ({"softcap": float("nan")}, "softcap is nan"),
        ({"sinks": [0.0, 0.0]}, "sinks is of type list; it must be a tensor"),
        ({"sinks": torch.zeros(2).double()}, r"sinks has dtype torch.float64; it must be torch.float32 or torch.*16"),
        ({"sinks": torch.zeros(3)}, r"sinks has shape \(3,\); it must be \(2,\)"),
        ({"sinks": torch.zeros(4)[::2]}, r"sinks is non-contiguous, with strides \(2,\)"),
        ({"sinks": torch.zeros(2, device="meta")}, "sinks is on meta; query is on cpu"),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
@FALLS_BACK
def test_errors_name_argument_value_and_what_is_allowed(
    service: Service, options: dict, message: str, dtype: torch.dtype
) -> None:
    q = tensor(1, 2, 8, 64, dtype=dtype)
    with pytest.raises(InvalidArgument, match=message):
        attention(q, q, q, **options)


@FALLS_BACK
def test_shapes_that_are_no_attention_are_named(service: Service) -> None:
    q = half(1, 2, 8, 64)
    with pytest.raises(
        InvalidArgument, match=r"shapes \(1, 2, 8, 64\), \(2, 2, 8, 64\), \(2, 2, 8, 64\); they must be"
    ):
        attention(q, half(2, 2, 8, 64), half(2, 2, 8, 64), softcap=2.0)
    with pytest.raises(
        InvalidArgument, match="query has 2 heads and key 1; they must agree, or divide with enable_gqa"
    ):
        attention(q, q[:, :1], q[:, :1], softcap=2.0)
    with pytest.raises(InvalidArgument, match=r"dtypes torch.float16, torch.float32, torch.float32; they must agree"):
        attention(q, q.float(), q.float(), softcap=2.0)
