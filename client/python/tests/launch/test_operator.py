"""attune::attention in torch's graphs."""

from __future__ import annotations

import pytest
from fake_service import Service

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402

from attune.torch import attention, replace_sdpa  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::attune.torch.AttuneWarning")


class Graphs:
    """A compiler that keeps the graphs it is given and runs them as they are."""

    def __init__(self) -> None:
        self.targets: list[list[str]] = []

    def __call__(self, graph: torch.fx.GraphModule, inputs: list) -> torch.fx.GraphModule:
        self.targets.append([str(node.target) for node in graph.graph.nodes if node.op == "call_function"])
        return graph


@pytest.fixture
def graphs() -> Graphs:
    torch._dynamo.reset()
    return Graphs()


def tensor(*shape: int, dtype: torch.dtype = torch.float16) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(1)).to(dtype)


@pytest.mark.parametrize("transposed", [False, True])
def test_torchs_own_checks_pass(transposed: bool) -> None:
    q = tensor(2, 8, 4, 64, dtype=torch.float32)
    q = q.transpose(1, 2) if transposed else q
    torch.library.opcheck(torch.ops.attune.attention.default, (q, q, q, True, None, False))


def test_a_graph_is_told_the_shape_and_strides_that_come() -> None:
    with FakeTensorMode():
        q = torch.empty(2, 8, 4, 64, dtype=torch.float16, device="cuda").transpose(1, 2)
        out = torch.ops.attune.attention(q, q, q)
    assert (out.shape, out.stride(), out.device.type) == (q.shape, q.stride(), "cuda")


def test_compiling_keeps_the_operator_in_one_graph(service: Service, graphs: Graphs) -> None:
    q = tensor(1, 2, 8, 64)
    compiled = torch.compile(lambda q: attention(q + 1, q, q, is_causal=True) * 2, fullgraph=True, backend=graphs)
    compiled(q)
    assert graphs.targets == [["<built-in function add>", "attune.attention", "<built-in function mul>"]]
    assert service.problems == ["b1.h2.q8.d64.f16.causal"]


def test_what_no_kernel_computes_is_sdpa_in_the_graph(service: Service, graphs: Graphs) -> None:
    q = tensor(1, 2, 8, 64)
    torch.compile(lambda q: attention(q, q, q, dropout_p=0.5), fullgraph=True, backend=graphs)(q)
    torch.compile(lambda q: attention(q, q, q[..., :32]), fullgraph=True, backend=graphs)(q)
    assert [["scaled_dot_product_attention" in target for target in found][-1:] for found in graphs.targets] == [
        [True],
        [True],
    ]


def test_compiling_inside_a_block_replaces_and_counts(service: Service, graphs: Graphs) -> None:
    q = tensor(1, 2, 8, 64)
    compiled = torch.compile(lambda q: F.scaled_dot_product_attention(q, q, q), fullgraph=True, backend=graphs)
    with replace_sdpa() as replaced:
        compiled(q)
    compiled(q)
    assert graphs.targets == [["attune.attention"], ["<built-in function scaled_dot_product_attention>"]]
    assert replaced.stats.launched == 1


def test_gradients_are_sdpas_in_the_graph(service: Service, graphs: Graphs) -> None:
    q = tensor(1, 2, 8, 64).requires_grad_()
    torch.compile(lambda q: attention(q, q, q), fullgraph=True, backend=graphs)(q).sum().backward()
    assert graphs.targets == [["<built-in function scaled_dot_product_attention>"]]
    assert q.grad is not None


def test_lengths_may_be_dynamic(service: Service, graphs: Graphs) -> None:
    compiled = torch.compile(lambda q: attention(q, q, q), fullgraph=True, backend=graphs, dynamic=True)
    for length in (8, 9, 10):
        compiled(tensor(1, 2, length, 64))
    assert len(graphs.targets) == 1
    assert service.problems == [f"b1.h2.q{length}.d64.f16" for length in (8, 9, 10)]


def test_export_without_dynamo_keeps_the_operator(service: Service) -> None:
    class Model(torch.nn.Module):
        def forward(self, q: torch.Tensor) -> torch.Tensor:
            return attention(q, q, q)

    exported = torch.export.export(Model(), (tensor(1, 2, 8, 64),), strict=False)
    assert "torch.ops.attune.attention" in exported.graph_module.code
