"""torch's SDPA inside and outside of `with attune.replace_sdpa()`."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType

import pytest
from fake_service import Service

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402

from attune.torch import attention, count_calls, replace, replace_sdpa  # noqa: E402

original = F.scaled_dot_product_attention


@pytest.fixture
def q(service: Service) -> torch.Tensor:
    return torch.zeros(1, 2, 8, 64, dtype=torch.float16)


def test_calls_inside_are_launched_and_counted(service: Service, q: torch.Tensor) -> None:
    with replace_sdpa() as replaced:
        F.scaled_dot_product_attention(q, q, q, is_causal=True)
        torch._C._nn.scaled_dot_product_attention(q, q, q)
    F.scaled_dot_product_attention(q, q, q)
    assert replaced.stats.launched == 2
    assert service.problems == ["b1.h2.q8.d64.f16.causal", "b1.h2.q8.d64.f16"]


@pytest.mark.filterwarnings("ignore::attune.torch.AttuneWarning")
def test_calls_are_counted_once_where_torch_has_a_default_device(q: torch.Tensor) -> None:
    """Which is a mode, and has torch call what stands in SDPA's place when SDPA is called."""
    with torch.device("cpu"), replace_sdpa() as replaced:
        out = F.scaled_dot_product_attention(q, q, q, scale=-0.5)
        F.scaled_dot_product_attention(q, q, q)
    assert torch.equal(out, original(q, q, q, scale=-0.5))
    assert (replaced.stats.launched, replaced.stats.fallbacks) == (1, {"scale": 1})


@pytest.mark.filterwarnings("ignore::attune.torch.AttuneWarning")
def test_calls_that_fell_back_are_counted_by_reason(q: torch.Tensor) -> None:
    with replace_sdpa() as replaced:
        for _ in range(2):
            F.scaled_dot_product_attention(q, q, q, scale=-0.5)
        F.scaled_dot_product_attention(q, q, q, torch.zeros(8, 8, dtype=torch.float16))
    assert replaced.stats.fallbacks == {"scale": 2, "attn_mask": 1}
    assert replaced.stats.fell_back == 3


@pytest.mark.filterwarnings("ignore::attune.torch.AttuneWarning")
def test_calls_of_attention_itself_are_counted_too(q: torch.Tensor) -> None:
    with replace_sdpa() as replaced:
        attention(q, q, q)
        attention(q, q, q, window=4)
        attention(q, q, q, scale=-0.5)
        attention(q, q, q, scale=-0.5, softcap=2.0)
    attention(q, q, q)
    assert (replaced.stats.launched, replaced.stats.fallbacks) == (2, {"scale": 2})


def test_modules_that_took_the_name_are_found(q: torch.Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("took_the_name")
    module.attend = original
    monkeypatch.setitem(sys.modules, "took_the_name", module)
    with replace_sdpa() as replaced:
        module.attend(q, q, q)
    assert replaced.stats.launched == 1
    assert module.attend is original


def test_names_that_a_notebooks_cell_binds_later_are_found(q: torch.Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    main = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", main)
    with replace_sdpa():
        pass
    main.attend = original
    for _ in range(2):
        with replace_sdpa() as replaced:
            main.attend(q, q, q)
        assert (replaced.stats.launched, main.attend) == (1, original)


def test_what_others_put_there_inside_stays(q: torch.Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("took_the_name")
    module.attend = original
    monkeypatch.setitem(sys.modules, "took_the_name", module)
    with replace_sdpa():
        ours = module.attend
        theirs = module.attend = lambda *tensors: ours(*tensors)
    assert module.attend is theirs
    with replace_sdpa() as replaced:
        module.attend(q, q, q)
    assert (module.attend, replaced.stats.launched) == (theirs, 1)


def test_modules_are_searched_only_after_others_were_imported(q: torch.Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    with replace_sdpa():
        pass
    monkeypatch.setattr(replace._Patches, "_search", lambda self: pytest.fail("searched again"))
    for _ in range(2):
        with replace_sdpa() as replaced:
            F.scaled_dot_product_attention(q, q, q)
        assert replaced.stats.launched == 1
        assert F.scaled_dot_product_attention is original


def test_the_name_taken_inside_means_sdpa_outside(service: Service, q: torch.Tensor) -> None:
    with replace_sdpa():
        taken = F.scaled_dot_product_attention
    taken(q, q, q)
    assert service.launches == []


def test_multihead_attention_is_replaced(service: Service) -> None:
    layer = torch.nn.MultiheadAttention(64, 2, batch_first=True, dtype=torch.float16)
    x = torch.zeros(1, 8, 64, dtype=torch.float16)
    # Grad mode keeps torch off the C++ path of its own; the layer's weights do not ask for gradients.
    layer.requires_grad_(False)
    with replace_sdpa() as replaced:
        layer(x, x, x, need_weights=False)
    assert replaced.stats.launched == 1


def test_an_exception_restores(q: torch.Tensor) -> None:
    with pytest.raises(ZeroDivisionError), replace_sdpa():
        1 / 0  # noqa: B018
    assert F.scaled_dot_product_attention is original
    assert torch._C._nn.scaled_dot_product_attention is original


def test_blocks_nest_and_the_innermost_counts(q: torch.Tensor) -> None:
    with replace_sdpa() as outer:
        F.scaled_dot_product_attention(q, q, q)
        with replace_sdpa() as inner:
            F.scaled_dot_product_attention(q, q, q)
        F.scaled_dot_product_attention(q, q, q)
    assert (outer.stats.launched, inner.stats.launched) == (2, 1)
    assert F.scaled_dot_product_attention is original


def test_other_threads_call_sdpa(service: Service, q: torch.Tensor) -> None:
    with replace_sdpa() as replaced:
        thread = threading.Thread(target=lambda: F.scaled_dot_product_attention(q, q, q))
        thread.start()
        thread.join()
    assert (replaced.stats.launched, service.launches) == (0, [])


@pytest.mark.parametrize("kind", [replace_sdpa, count_calls])
def test_a_block_may_be_left_in_another_thread(q: torch.Tensor, kind: type) -> None:
    """As where a server runs the two halves of a generator in a pool's threads: it ends for the one that entered it."""
    with kind() as outer:
        block = kind()
        entering = ThreadPoolExecutor(1)
        entering.submit(block.__enter__).result()
        entering.submit(attention, q, q, q).result()
        block.__exit__(None, None, None)
        entering.submit(attention, q, q, q).result()
        assert entering.submit(F.scaled_dot_product_attention, q, q, q).result().shape == q.shape
        attention(q, q, q)
        entering.shutdown()
    assert (block.stats.launched, outer.stats.launched) == (1, 1)
    assert F.scaled_dot_product_attention is original


def test_a_block_that_two_threads_share_ends_for_the_one_that_leaves(q: torch.Tensor) -> None:
    shared = replace_sdpa()
    other = ThreadPoolExecutor(1)
    with shared:
        other.submit(shared.__enter__).result()
    F.scaled_dot_product_attention(q, q, q)
    assert shared.stats.launched == 0
    other.submit(lambda: F.scaled_dot_product_attention(q, q, q)).result()
    other.submit(shared.__exit__, None, None, None).result()
    other.submit(lambda: F.scaled_dot_product_attention(q, q, q)).result()
    other.shutdown()
    assert shared.stats.launched == 1
    assert F.scaled_dot_product_attention is original


def test_counting_replaces_nothing(service: Service, q: torch.Tensor) -> None:
    with count_calls() as counted:
        attention(q, q, q)
        F.scaled_dot_product_attention(q, q, q)
    attention(q, q, q)
    assert (counted.stats.launched, len(service.launches)) == (1, 2)
    assert F.scaled_dot_product_attention is original


def test_counting_replaces_nothing_while_another_thread_does(service: Service, q: torch.Tensor) -> None:
    counts: list[int] = []

    def work() -> None:
        with count_calls() as counted:
            F.scaled_dot_product_attention(q, q, q)
        counts.append(counted.stats.launched)

    with replace_sdpa():
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert (counts, service.launches) == ([0], [])


def test_counting_inside_of_a_block_counts_what_is_replaced(q: torch.Tensor) -> None:
    with replace_sdpa() as replaced:
        with count_calls() as counted:
            F.scaled_dot_product_attention(q, q, q)
        F.scaled_dot_product_attention(q, q, q)
    assert (counted.stats.launched, replaced.stats.launched) == (1, 1)


def test_threads_count_for_themselves(q: torch.Tensor) -> None:
    together = threading.Barrier(4)
    counts: list[int] = []

    def work(calls: int) -> None:
        with replace_sdpa() as replaced:
            together.wait()
            for _ in range(calls):
                F.scaled_dot_product_attention(q, q, q)
            together.wait()
        counts.append(replaced.stats.launched)

    threads = [threading.Thread(target=work, args=(calls,)) for calls in (10, 20, 30, 40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(counts) == [10, 20, 30, 40]
    assert F.scaled_dot_product_attention is original
