"""attune.quantize_kv: elements, scales and what is lost."""

from __future__ import annotations

import re

import pytest

from attune.errors import InvalidArgument

torch = pytest.importorskip("torch")

from tensors import tensor  # noqa: E402

from attune.torch import attention, quantize_kv  # noqa: E402

DTYPES = [torch.float8_e4m3fn, torch.float8_e5m2]
SHAPES = {"tensor": (), "head": (2,), "batch-head": (3, 2)}


def keys() -> torch.Tensor:
    """Heads of magnitudes a thousandfold apart."""
    return (
        tensor(3, 2, 9, 64) * torch.tensor([0.01, 10.0]).view(2, 1, 1) * torch.tensor([1.0, 3.0, 9.0]).view(3, 1, 1, 1)
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("scales", SHAPES)
def test_the_largest_magnitude_that_shares_a_scale_becomes_the_largest_element(dtype: torch.dtype, scales: str) -> None:
    elements, scale, _ = quantize_kv(keys(), dtype, scales)
    assert (elements.dtype, scale.dtype, tuple(scale.shape)) == (dtype, torch.float32, SHAPES[scales])
    shared = {"tensor": (0, 1, 2, 3), "head": (0, 2, 3), "batch-head": (2, 3)}[scales]
    assert (elements.float().abs().amax(shared) == torch.finfo(dtype).max).all()


@pytest.mark.parametrize(("dtype", "step"), [(DTYPES[0], 2**-4), (DTYPES[1], 2**-3)])
def test_an_element_is_as_near_as_its_type_has_one(dtype: torch.dtype, step: float) -> None:
    elements, scale, error = quantize_kv(keys(), dtype, "batch-head")
    back = elements.float() * scale[..., None, None]
    smallest = torch.finfo(dtype).smallest_normal * scale[..., None, None]
    assert ((back - keys()).abs() <= step * keys().abs() + step * smallest).all()
    assert 0.1 * step < error < step


def test_the_finer_the_scales_the_less_is_lost_of_a_small_head() -> None:
    lost = []
    for scales in SHAPES:
        elements, scale, _ = quantize_kv(keys(), scales=scales)
        back = elements.float() * scale.expand(3, 2)[..., None, None]
        lost.append((back - keys())[0, 0].norm())
    assert lost[0] > lost[1] > lost[2]


def test_elements_lie_in_memory_as_the_tensor_does() -> None:
    tokens = keys().transpose(1, 2).contiguous()
    assert quantize_kv(tokens.transpose(1, 2)).elements.transpose(1, 2).is_contiguous()


def test_a_scale_that_is_given_saturates_what_it_makes_too_large() -> None:
    elements, scale, _ = quantize_kv(
        torch.tensor([1.0, -1000.0]).view(1, 1, 1, 2), scales="tensor", scale=torch.tensor(1.0)
    )
    assert elements.flatten().float().tolist() == [1.0, -448.0]
    assert scale == 1


def test_zeros_stay_zeros_and_nan_stays_nan() -> None:
    zeros = quantize_kv(torch.zeros(1, 1, 2, 8), scales="tensor")
    assert zeros.scale == 1
    assert not zeros.elements.float().any()
    assert zeros.error == 0
    empty = quantize_kv(torch.zeros(2, 3, 0, 8), scales="head")
    assert empty.scale.tolist() == [1.0, 1.0, 1.0]
    with_nan = quantize_kv(torch.tensor([1.0, float("nan")]).view(1, 1, 1, 2))
    assert with_nan.elements.float().isnan().any()


@pytest.mark.filterwarnings("ignore::attune.torch.AttuneWarning")
@pytest.mark.parametrize("scales", SHAPES)
def test_attention_takes_what_it_returns(scales: str) -> None:
    query, k, v = tensor(3, 4, 5, 64).half(), tensor(3, 2, 9, 64, seed=2), tensor(3, 2, 9, 64, seed=3)
    key, value = quantize_kv(k, scales=scales), quantize_kv(v, scales=scales)
    out = attention(query, key.elements, value.elements, k_scale=key.scale, v_scale=value.scale, enable_gqa=True)
    expected = torch.nn.functional.scaled_dot_product_attention(query.float(), k, v, enable_gqa=True)
    assert (out.float() - expected).norm() < 0.1 * expected.norm()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"dtype": torch.int8}, "dtype is torch.int8; it must be one of torch.float8_e4m3fn, torch.float8_e5m2"),
        ({"scales": "row"}, "scales is 'row'; it must be one of 'tensor', 'head', 'batch-head'"),
        ({"tensor": torch.zeros(2, 3, 4)}, "tensor is torch.float32 (2, 3, 4); it must be"),
        ({"scale": torch.ones(3)}, "scale is torch.float32 (3,); with scales 'head' it must be torch.float32 (2,)"),
    ],
)
def test_errors_name_the_argument_and_what_is_allowed(given: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidArgument, match=re.escape(message)):
        quantize_kv(**{"tensor": keys(), **given})
