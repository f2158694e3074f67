"""Which kernel attune.attention launches on what."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import pytest
from fake_service import Service

torch = pytest.importorskip("torch")

from attune.torch import AttuneWarning, attention, dispatch  # noqa: E402
from attune.torch.dispatch import attend  # noqa: E402
from attune.torch.fallback import Stats  # noqa: E402

pytestmark = pytest.mark.filterwarnings("error::attune.torch.AttuneWarning")


def bhsd(*shape: int) -> torch.Tensor:
    return torch.zeros(shape, dtype=torch.float16)


def bshd(batch: int, heads: int, length: int, dim: int) -> torch.Tensor:
    return bhsd(batch, length, heads, dim).transpose(1, 2)


def test_the_service_is_asked_once_a_shape(service: Service) -> None:
    q = bhsd(2, 4, 16, 64)
    for _ in range(3):
        attention(q, q, q)
    attention(bhsd(2, 4, 32, 64), q, q)
    assert service.problems == ["b2.h4.q16.d64.f16", "b2.h4.q32.kv16.d64.f16"]
    assert len(service.launches) == 4


def test_a_launch_gets_the_tensors_own_addresses_and_the_current_stream(service: Service) -> None:
    q, k, v = bhsd(1, 2, 8, 64), bhsd(1, 2, 8, 64), bhsd(1, 2, 8, 64)
    for _ in range(2):
        out = attention(q, k, v)
        assert service.launches[-1] == (q.data_ptr(), k.data_ptr(), v.data_ptr(), out.data_ptr(), 0, 5)


@pytest.mark.parametrize(
    ("options", "kv_heads", "text"),
    [
        ({"is_causal": True}, 4, "b1.h4.q8.kv12.d64.f16.causal"),
        ({"enable_gqa": True}, 2, "b1.h4.kvh2.q8.kv12.d64.f16"),
        ({"enable_gqa": True}, 1, "b1.h4.kvh1.q8.kv12.d64.f16"),
        ({"scale": 0.125}, 4, "b1.h4.q8.kv12.d64.f16"),
    ],
)
def test_options_become_the_problem(service: Service, options: dict, kv_heads: int, text: str) -> None:
    kv = bhsd(1, kv_heads, 12, 64)
    attention(bhsd(1, 4, 8, 64), kv, kv, **options)
    assert service.problems == [text]


def test_inputs_without_heads_are_problems_of_one_head(service: Service) -> None:
    q = bhsd(3, 8, 64)
    assert attention(q, q, q).shape == q.shape
    assert service.problems == ["b3.h1.q8.d64.f16"]


def test_transposed_views_are_read_in_place_and_the_result_is_laid_out_like_the_query(service: Service) -> None:
    q = bshd(2, 4, 16, 64)
    out = attention(q, q, q)
    assert service.problems == ["b2.h4.q16.d64.f16.bshd"]
    assert service.launches[0][0] == q.data_ptr()
    assert out.stride() == q.stride()


def test_a_single_row_has_the_layout_of_the_keys(service: Service) -> None:
    cache = bshd(1, 4, 32, 64)[:, :, :20]
    q = bhsd(1, 4, 1, 64)
    attention(q, cache, cache)
    assert service.problems == ["b1.h4.q1.kv20.d64.f16.bshd"]
    assert service.launches[0][:3] == (q.data_ptr(), cache.data_ptr(), cache.data_ptr())


def test_what_has_no_layout_is_copied_into_the_querys(service: Service) -> None:
    q, kv = bshd(2, 4, 16, 64), bhsd(2, 4, 64, 64)[:, :, :16]
    out = attention(q, kv, kv)
    assert service.problems == ["b2.h4.q16.d64.f16.bshd"]
    assert service.launches[0][0] == q.data_ptr()
    assert kv.data_ptr() not in service.launches[0]
    assert out.stride() == q.stride()


def test_a_cache_is_not_copied_at_every_step(service: Service) -> None:
    q, cache = bhsd(2, 4, 1, 64), bhsd(2, 4, 64, 64)[:, :, :48]
    stats = Stats()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AttuneWarning)
        for _ in range(2):
            attend(stats, q, cache, cache, None, 0.0, False, None, False)
    assert (stats.launched, stats.fallbacks, service.problems) == (0, {"layout": 2}, [])


@pytest.mark.parametrize(("query", "cache", "layout"), [(bshd, bhsd, ""), (bhsd, bshd, ".bshd")])
def test_a_longer_cache_is_read_in_its_own_layout(
    service: Service, monkeypatch: pytest.MonkeyPatch, query: Callable, cache: Callable, layout: str
) -> None:
    q, kv = query(2, 4, 16, 64), cache(2, 4, 48, 64)
    written = []
    monkeypatch.setattr(dispatch, "empty_like", lambda like: written.append(like.clone().fill_(3)) or written[-1])
    for _ in range(2):
        out = attention(q, kv, kv)
        _, k, v, to, *_ = service.launches[-1]
        assert (k, v, to) == (kv.data_ptr(), kv.data_ptr(), written[-1].data_ptr())
        assert written[-1].stride() == cache(2, 4, 16, 64).stride()
        assert (out.stride(), out.unique().tolist()) == (q.stride(), [3])
    assert service.problems == [f"b2.h4.q16.kv48.d64.f16{layout}"]


def test_a_query_without_layout_gives_a_contiguous_result(service: Service) -> None:
    q, kv = bhsd(2, 4, 32, 64)[:, :, ::2], bhsd(2, 4, 16, 64)
    assert attention(q, kv, kv).is_contiguous()
    assert service.problems == ["b2.h4.q16.d64.f16"]


def test_an_address_that_kernels_cannot_load_from_is_copied_every_time(service: Service) -> None:
    memory = torch.zeros(1 * 2 * 8 * 64 + 1, dtype=torch.float16)
    aligned, misaligned = memory[:-1].view(1, 2, 8, 64), memory[1:].view(1, 2, 8, 64)
    for _ in range(2):
        attention(aligned, aligned, aligned)
        attention(aligned, misaligned, aligned)
        q, k, v, *_ = service.launches[-1]
        assert (q, v) == (aligned.data_ptr(), aligned.data_ptr())
        assert k % 16 == 0
        assert k != q
    assert len(service.problems) == 1


def test_parameters_may_be_inputs_without_gradients(service: Service) -> None:
    q = torch.nn.Parameter(bhsd(1, 2, 8, 64))
    with torch.no_grad():
        out = attention(q, q, q)
    assert (type(out), out.requires_grad) == (torch.Tensor, False)
    assert service.launches[0][0] == q.data_ptr()


def test_inference_mode_launches(service: Service) -> None:
    q = bhsd(1, 2, 8, 64).requires_grad_()
    with torch.inference_mode():
        attention(q, q, q)
    assert len(service.launches) == 1


def test_refresh_asks_again(service: Service) -> None:
    from attune.torch import refresh

    q = bhsd(1, 2, 8, 64)
    attention(q, q, q)
    refresh()
    attention(q, q, q)
    assert len(service.problems) == 2


def test_kernels_are_looked_for_under_the_settings_in_force(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    from attune.background import settings
    from attune.torch import configure, refresh

    refresh()
    read = settings.settings
    others = [lambda: configure(device="cuda:0", hold=7.0)]

    def read_before_others_configure() -> settings.Settings:
        found = read()
        if others:
            others.pop()()
        return found

    monkeypatch.setattr(settings, "settings", read_before_others_configure)
    assert dispatch._current_kernel_cache()._settings.hold == 7.0
