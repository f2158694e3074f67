"""Calls with other softmax scales than 1/sqrt(head_dim)."""

from __future__ import annotations

import pytest
from fake_service import Service

torch = pytest.importorskip("torch")

from tensors import half  # noqa: E402

import attune  # noqa: E402
from attune.torch import AttuneWarning, process  # noqa: E402
from attune.torch.dispatch import attend_options  # noqa: E402
from attune.torch.fallback import Stats  # noqa: E402
from attune.torch.options import Options, options_of  # noqa: E402


def test_calls_with_another_scale_are_launched_with_it(service: Service) -> None:
    q = half(1, 2, 8, 64)
    for scale in (0.25, 0.5, 0.25, 0.125, None):
        attune.attention(q, q, q, scale=scale)
    assert len(service.launches) == 5
    assert service.scales == [0.25, 0.5, 0.25]
    assert service.problems == ["b1.h2.q8.d64.f16"]


def test_options_known_with_another_scale_are_launched_with_it_again(service: Service) -> None:
    q, stats = half(1, 2, 8, 64), Stats()
    for scale in (None, 0.5, 0.5, None):
        attend_options(stats, q, q, q, None, 0.0, Options(softcap=2.0, scale=scale))
    assert (stats.launched, service.scales) == (4, [0.5, 0.5])


def test_options_and_strides_of_their_own_go_together_with_another_scale(service: Service) -> None:
    q, wide = half(1, 2, 8, 64), half(1, 2, 8, 192)[..., 64:128]
    stats = Stats()
    attend_options(stats, q, wide, wide, None, 0.0, Options(softcap=2.0, scale=0.5))
    attune.attention(q, wide, wide, scale=0.5)
    assert (stats.launched, stats.fallbacks) == (1, {})
    assert (service.scales, len(service.placements)) == ([0.5, 0.5], 2)


def test_a_scale_that_the_kernel_does_not_compute_is_sdpas(service: Service) -> None:
    q = half(1, 2, 8, 64)
    with pytest.warns(AttuneWarning, match=r"\(scale\): scale is 2; this kernel computes those above 0, up to 1"):
        out = attune.attention(q, q, q, scale=2.0)
    assert torch.equal(out, torch.nn.functional.scaled_dot_product_attention(q, q, q, scale=2.0))
    assert service.launches == []


def test_a_scale_may_be_a_tensor_whose_value_counts(service: Service) -> None:
    q, scale = half(1, 2, 8, 64), torch.tensor(0.125)
    attune.attention(q, q, q, scale=scale)
    scale.fill_(0.5)
    attune.attention(q, q, q, scale=scale)
    attend_options(Stats(), q, q, q, None, 0.0, options_of(False, None, None, 2.0, None, False, scale, False))
    assert service.scales == [0.5, 0.5]


@pytest.mark.filterwarnings("ignore::attune.torch.AttuneWarning")
def test_scales_that_are_no_numbers_are_not_remembered(service: Service) -> None:
    q = half(1, 2, 8, 64)
    for _ in range(3):
        attune.attention(q, q, q, scale=float("nan"))
    assert not process.calls
