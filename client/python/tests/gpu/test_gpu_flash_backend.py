"""attune as PyTorch's flash backend: SDPA's results and gradients, eager and compiled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from gpu_problems import DEVICE

import attune

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from torch.nn.attention import SDPBackend, sdpa_kernel  # noqa: E402

from attune.background.settings import ACCEPTABLE  # noqa: E402

if not hasattr(torch.nn.attention, "register_flash_attention_impl") or not hasattr(torch.library, "get_kernel"):
    pytest.skip("this torch takes no other flash backend", allow_module_level=True)


@pytest.fixture(autouse=True)
def active(client_of_any: attune.Client) -> Iterator[None]:
    """Every call is attune's, tuned or not."""
    acceptable = (*ACCEPTABLE, attune.Provenance.HEURISTIC)
    attune.configure(client_of_any, device=DEVICE, acceptable=acceptable, wait=120.0, never_slower=False)
    torch.nn.attention.activate_flash_attention_impl("attune")
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        yield
    torch.nn.attention.restore_flash_attention_impl()
    attune.refresh()


def given(requires_grad: bool = False, dim: int = 64) -> list[Any]:
    generator = torch.Generator("cuda").manual_seed(0)
    shapes = (2, 8, 300, dim), (2, 2, 300, dim), (2, 2, 300, dim)
    made = [torch.randn(shape, generator=generator, device="cuda", dtype=torch.float16) for shape in shapes]
    return [tensor.requires_grad_(requires_grad) for tensor in made]


def exact(q: Any, k: Any, v: Any) -> Any:
    with sdpa_kernel(SDPBackend.MATH):
        return F.scaled_dot_product_attention(q.float(), k.float(), v.float(), is_causal=True, enable_gqa=True)


def attend(q: Any, k: Any, v: Any) -> Any:
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)


@pytest.mark.parametrize("dim", [64, 128])
def test_sdpa_launches_kernels(dim: int) -> None:
    tensors = given(dim=dim)
    with torch.no_grad(), attune.count_calls() as counted:
        for _ in range(2):
            torch.testing.assert_close(attend(*tensors).float(), exact(*tensors), rtol=2e-3, atol=2e-3)
    assert (counted.stats.launched, counted.stats.fallbacks) == (2, {})


def test_the_log_sum_exp_is_torchs_own() -> None:
    q, k, v = given()
    ours = torch.ops.aten._scaled_dot_product_flash_attention(q, k, v, 0.0, True)
    torch.nn.attention.restore_flash_attention_impl()
    theirs = torch.ops.aten._scaled_dot_product_flash_attention(q, k, v, 0.0, True)
    for one, other in zip(ours[:2], theirs[:2], strict=True):
        torch.testing.assert_close(one, other, rtol=2e-3, atol=2e-3)
    assert ours[4:6] == theirs[4:6]
    assert [x.dtype for x in ours[6:]] == [x.dtype for x in theirs[6:]]
    torch.nn.attention.activate_flash_attention_impl("attune")


@pytest.mark.parametrize("compiled", [False, True])
def test_gradients_are_of_torchs_own_backward(compiled: bool) -> None:
    tensors, doubled = given(requires_grad=True), [tensor.detach().float().requires_grad_() for tensor in given()]
    run = torch.compile(attend, fullgraph=True) if compiled else attend
    with attune.count_calls() as counted:
        out = run(*tensors)
        found = torch.autograd.grad(out.float().square().sum(), tensors)
    expected = torch.autograd.grad(exact(*doubled).square().sum(), doubled)
    for ours, theirs in zip(found, expected, strict=True):
        assert (ours.float() - theirs).norm() <= 1e-2 * theirs.norm()
    assert counted.stats.launched == 1


def test_a_graph_holds_kernels() -> None:
    tensors = given()
    with torch.no_grad():
        attend(*tensors)
        graph = torch.cuda.CUDAGraph()
        with attune.count_calls() as counted, torch.cuda.graph(graph):
            found = attend(*tensors)
        for tensor in tensors:
            tensor.mul_(0.5)
        expected = exact(*tensors)
        graph.replay()
    torch.testing.assert_close(found.float(), expected, rtol=2e-3, atol=2e-3)
    assert (counted.stats.launched, counted.stats.fallbacks) == (1, {})
