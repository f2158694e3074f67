"""Which kernel attune.attention launches on what."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import pytest
from fake_service import Service

torch = pytest.importorskip("torch")

from attune.torch import AttuneWarning, attention, process  # noqa: E402
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
        assert service.launches[-1][:6] == (q.data_ptr(), k.data_ptr(), v.data_ptr(), out.data_ptr(), 0, 5)


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


def spacing(tensor: torch.Tensor) -> tuple[int, ...]:
    return tensor.stride()[:3]


def fused(batch: int, heads: int, length: int, dim: int) -> list[torch.Tensor]:
    """q, k and v of one projection."""
    packed = torch.zeros(batch, length, 3, heads, dim, dtype=torch.float16)
    return [packed[:, :, i].transpose(1, 2) for i in range(3)]


def check_reads_in_place(service: Service, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    for _ in range(2):
        out = attention(q, k, v)
        assert service.launches[-1][:4] == (q.data_ptr(), k.data_ptr(), v.data_ptr(), out.data_ptr())
        assert service.placements[-1] == (spacing(q), spacing(k), spacing(v), spacing(out))
    assert len(service.problems) == 1
    return out


def test_views_of_a_fused_projection_are_read_in_place(service: Service) -> None:
    q, k, v = fused(2, 4, 16, 64)
    out = check_reads_in_place(service, q, k, v)
    assert service.problems == ["b2.h4.q16.d64.f16"]
    assert out.stride() == bshd(2, 4, 16, 64).stride(), "dense, as SDPA has it"


def test_a_sliced_cache_is_read_in_place(service: Service) -> None:
    cache = bhsd(2, 4, 64, 64)[:, :, :48]
    out = check_reads_in_place(service, bhsd(2, 4, 1, 64), cache, cache)
    assert service.problems == ["b2.h4.q1.kv48.d64.f16"]
    assert out.is_contiguous()


@pytest.mark.parametrize(("query", "cache", "layout"), [(bshd, bhsd, ""), (bhsd, bshd, ".bshd")])
def test_queries_and_a_longer_cache_are_each_read_in_their_layout(
    service: Service, query: Callable, cache: Callable, layout: str
) -> None:
    q = query(2, 4, 16, 64)
    out = check_reads_in_place(service, q, cache(2, 4, 48, 64), cache(2, 4, 48, 64))
    assert out.stride() == q.stride()
    assert service.problems == [f"b2.h4.q16.kv48.d64.f16{layout}"]


def test_inputs_without_heads_have_strides_of_their_own_too(service: Service) -> None:
    x = bhsd(3, 16, 64)[:, ::2]
    out = attention(x, x, x)
    assert service.placements == [((1024, 0, 128),) * 3 + ((512, 0, 64),)]
    assert out.is_contiguous()


def computed_by_torch(service: Service, *inputs: torch.Tensor) -> dict[str, int]:
    stats = Stats()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AttuneWarning)
        for _ in range(2):
            attend(stats, *inputs, None, 0.0, False, None, False)
    assert (stats.launched, service.launches) == (0, [])
    return dict(stats.fallbacks)


def test_what_no_kernel_reads_is_computed_by_torch(service: Service) -> None:
    x = bhsd(1, 2, 8, 64)
    apart = bhsd(1, 2, 8, 128)[..., ::2]
    odd = bhsd(1, 2, 8, 68)[..., :64]
    for inputs in ((apart, x, x), (x, odd, x)):
        assert computed_by_torch(service, *inputs) == {"layout": 2}
    assert service.problems == []


def test_an_address_that_no_kernel_reads_from_is_one_calls_matter(service: Service) -> None:
    memory = torch.zeros(1 * 2 * 8 * 64 + 1, dtype=torch.float16)
    aligned, misaligned = memory[:-1].view(1, 2, 8, 64), memory[1:].view(1, 2, 8, 64)
    assert computed_by_torch(service, aligned, misaligned, aligned) == {"layout": 2}
    attention(aligned, aligned, aligned)
    assert len(service.launches) == 1


def test_a_kernel_of_one_layout_alone_leaves_others_to_torch(service: Service) -> None:
    service.takes_strides = False
    x = bhsd(2, 4, 64, 64)[:, :, :16]
    assert computed_by_torch(service, x, x, x) == {"layout": 2}
    dense = bhsd(2, 4, 16, 64)
    attention(dense, dense, dense)
    assert len(service.launches) == 1, "the kernel stays in use"


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
    assert process.kernel_cache()._settings.hold == 7.0
