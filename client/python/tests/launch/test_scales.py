"""8-bit keys and values: what is asked of a kernel, how scales are placed, and what is computed without a kernel."""

from __future__ import annotations

import re

import pytest
from fake_service import Service

from attune.errors import InvalidArgument, NotFound

torch = pytest.importorskip("torch")

from tensors import bounds, half, ints, tensor  # noqa: E402

from attune.torch import attention, attention_paged, attention_varlen  # noqa: E402

FALLS_BACK = pytest.mark.filterwarnings("ignore::attune.torch.AttuneWarning")
DTYPES = [torch.float8_e4m3fn, torch.float8_e5m2]
SHAPES = [(), (2,), (3, 2)]


def cache(*shape: int, dtype: torch.dtype = torch.float8_e4m3fn, seed: int = 1) -> torch.Tensor:
    return tensor(*shape, seed=seed).mul(8).to(dtype)


def scale(shape: tuple[int, ...], seed: int = 1) -> torch.Tensor:
    return 0.05 + 0.2 * torch.rand(shape, generator=torch.Generator().manual_seed(seed))


def dense(shape: tuple[int, ...], dtype: torch.dtype = torch.float8_e4m3fn) -> dict[str, torch.Tensor]:
    return {
        "query": half(3, 4, 5, 64),
        "key": cache(3, 2, 9, 64, dtype=dtype),
        "value": cache(3, 2, 9, 64, dtype=dtype, seed=2),
        "k_scale": scale(shape),
        "v_scale": scale(shape, seed=2),
        "enable_gqa": True,
    }


def dequantised(codes: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """[batch, heads, length, head_dim]."""
    return codes.double() * scales.double().expand(codes.shape[:2])[..., None, None]


@pytest.mark.parametrize(("dtype", "word"), [(DTYPES[0], "e4m3"), (DTYPES[1], "e5m2")])
def test_the_problem_names_the_elements_and_not_how_the_scales_are_shared(
    service: Service, dtype: torch.dtype, word: str
) -> None:
    for shape in SHAPES:
        attention(**dense(shape, dtype))
    assert service.problems == [f"b3.h4.kvh2.q5.kv9.d64.f16.kv{word}"]


def test_a_launch_gets_the_scales_where_they_are(service: Service) -> None:
    given = dense((3, 2))
    attention(**given)
    assert service.launches[0][6] == [*5 * (0,), given["k_scale"].data_ptr(), given["v_scale"].data_ptr()]


@pytest.mark.parametrize(
    ("scales", "spacing"),
    [
        (scale(()), (0, 0, 0)),
        (scale((2,)), (0, 1, 0)),
        (scale((3, 2)), (2, 1, 0)),
        (scale((2, 3)).T, (1, 3, 0)),
        (scale((2,)).expand(3, 2), (0, 1, 0)),
    ],
)
def test_scales_are_placed_by_their_strides_without_a_copy(
    service: Service, scales: torch.Tensor, spacing: tuple[int, int, int]
) -> None:
    attention(**{**dense(()), "k_scale": scales})
    assert service.placements[0][4:] == (spacing, (0, 0, 0))


@FALLS_BACK
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("options", [{}, {"softcap": 5.0}], ids=["sdpa", "unfused"])
def test_without_a_kernel_element_times_scale_is_what_torch_computes_with(
    service: Service, dtype: torch.dtype, shape: tuple[int, ...], options: dict[str, float]
) -> None:
    service.refuses_with = NotFound("not tuned")
    given = dense(shape, dtype)
    out = attention(**given, **options)
    key = dequantised(given["key"], given["k_scale"]).repeat_interleave(2, 1)
    value = dequantised(given["value"], given["v_scale"]).repeat_interleave(2, 1)
    logits = given["query"].double() @ key.transpose(-1, -2) / 8
    if options:
        logits = 5 * torch.tanh(logits / 5)
    torch.testing.assert_close(out.double(), logits.softmax(-1) @ value, rtol=2e-2, atol=2e-2)
    assert out.dtype is torch.float16


@FALLS_BACK
@pytest.mark.parametrize("shape", SHAPES)
def test_sequences_and_pages_take_the_scale_of_their_own_sequence(service: Service, shape: tuple[int, ...]) -> None:
    service.refuses_with = NotFound("not tuned")
    keys, values = cache(16, 2, 64), cache(16, 2, 64, seed=2)
    of_scales = {"k_scale": scale(shape), "v_scale": scale(shape, seed=2), "enable_gqa": True}
    lengths = [5, 8, 3]
    query = half(3, 1, 4, 64)
    packed = attention_varlen(query[:, 0], keys, values, bounds([1, 1, 1]), bounds(lengths), 1, 8, **of_scales)
    pages = torch.zeros(4, 8, 2, 64).to(torch.float8_e4m3fn), torch.zeros(4, 8, 2, 64).to(torch.float8_e4m3fn)
    start = 0
    for page, length in enumerate(lengths):
        for to, rows in zip(pages, (keys, values), strict=True):
            to.view(torch.uint8)[page, :length] = rows.view(torch.uint8)[start : start + length]
        start += length
    paged = attention_paged(query, *pages, ints([0], [1], [2]), ints(*lengths), **of_scales)
    torch.testing.assert_close(paged[:, 0], packed)
    start = 0
    for b, length in enumerate(lengths):
        part = slice(start, start + length)
        alone = attention(
            query[b : b + 1].transpose(1, 2),
            keys[part].transpose(0, 1).unsqueeze(0),
            values[part].transpose(0, 1).unsqueeze(0),
            k_scale=of_scales["k_scale"][b] if len(shape) == 2 else of_scales["k_scale"],
            v_scale=of_scales["v_scale"][b] if len(shape) == 2 else of_scales["v_scale"],
            enable_gqa=True,
        )
        torch.testing.assert_close(packed[b], alone[0, :, 0], rtol=2e-3, atol=2e-3)
        start += length


@FALLS_BACK
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"v_scale": None}, "v_scale is not given; key has dtype torch.float8_e4m3fn, which needs a tensor of it"),
        ({"k_scale": 0.5}, "k_scale is of type float; key has dtype torch.float8_e4m3fn, which needs a tensor of it"),
        (
            {"k_scale": scale((4,))},
            "k_scale has dtype torch.float32 and shape (4,); it must be torch.float32 of shape []",
        ),
        ({"k_scale": scale((2,)).double()}, "k_scale has dtype torch.float64"),
        ({"key": half(3, 2, 9, 64), "value": half(3, 2, 9, 64)}, "k_scale is given and key has dtype torch.float16"),
        ({"value": cache(3, 2, 9, 64, dtype=torch.float8_e5m2)}, "query, key and value have dtypes"),
    ],
)
def test_errors_name_the_scale_and_what_is_allowed(service: Service, changes: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidArgument, match=re.escape(message)):
        attention(**{**dense((2,)), **changes})
    assert service.launches == []


@FALLS_BACK
def test_a_graph_of_torch_compile_holds_the_scales(service: Service) -> None:
    given = dense((3, 2))
    compiled = torch.compile(attention, backend="eager", fullgraph=True)
    compiled(**given)
    assert service.launches[-1][6][5:] == [given["k_scale"].data_ptr(), given["v_scale"].data_ptr()]
