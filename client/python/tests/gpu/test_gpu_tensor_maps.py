"""Tensor maps with a recipe made for them: O is K, copied through shared memory by a box."""

from __future__ import annotations

import pytest
from answers import answer
from nvrtc_ptx import compiled

import attune
from attune.values import KernelArg, KernelLaunch, LaunchRecipe, TensorMap

torch = pytest.importorskip("torch")

SOURCE = b"""
struct alignas(128) TensorMap { unsigned long long opaque[16]; };
__device__ unsigned Shared(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }

extern "C" __global__ void copy(const __grid_constant__ TensorMap k, uint4* o, unsigned clusters) {
  __shared__ __align__(128) uint4 box[128];
  __shared__ __align__(8) unsigned long long landed;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(Shared(&landed)) : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 2048;" ::"r"(Shared(&landed)) : "memory");
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], "
                 "[%1, {%2, %2}], [%3];" ::"r"(Shared(box)), "l"(&k), "r"(0), "r"(Shared(&landed)) : "memory");
  }
  __syncthreads();
  asm volatile("{\\n.reg .pred done;\\nAGAIN:\\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], 0;\\n"
               "@!done bra AGAIN;\\n}\\n" ::"r"(Shared(&landed)) : "memory");
  unsigned size;
  asm("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(size));
  if (blockIdx.x == 0 && size == clusters) o[threadIdx.x] = box[threadIdx.x];
}
"""


@pytest.fixture(scope="module")
def kernel() -> attune.Kernel:
    if torch.cuda.get_device_capability() < (9, 0):
        pytest.skip("needs compute capability 9.0")
    artifact = compiled(SOURCE)
    box = TensorMap(KernelArg("K"), 0, "F16", (64, 16), (128,), (64, 16), 0, 0)
    args = (KernelArg("TENSOR_MAP", box), KernelArg("O"), KernelArg("I32", 2))
    recipe = LaunchRecipe((), (KernelLaunch("copy", (4, 1, 1), (128, 1, 1), 0, args, (2, 1, 1)),), 0)
    return attune.load(answer("b1.h1.q16.d64.f16", recipe, artifact=artifact))


def tensors(count: int) -> list:
    return [torch.randn(1, 1, 16, 64, device="cuda").half() for _ in range(count)]


def test_a_map_follows_its_tensor(kernel: attune.Kernel) -> None:
    q, *keys = tensors(4)
    for k in (*keys, *keys):
        assert torch.equal(kernel(q, k, q), k)


def test_a_captured_graph_keeps_its_map(kernel: attune.Kernel) -> None:
    q, k, other, out = tensors(4)
    kernel(q, k, q, out)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kernel(q, k, q, out)
    assert torch.equal(kernel(q, other, q), other)
    k.copy_(other + 1)
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(out, k)


def test_launches_of_a_graph_have_maps_of_their_own(kernel: attune.Kernel) -> None:
    q, k, other, out, other_out = tensors(5)
    kernel(q, k, q, out)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kernel(q, k, q, out)
        kernel(q, other, q, other_out)
    k.copy_(other + 1)
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(out, k)
    assert torch.equal(other_out, other)
