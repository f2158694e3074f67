"""attune::attention in torch's graphs."""

from __future__ import annotations

import pytest
from fake_service import Service

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from tensors import half, ints, tensor  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402

from attune.torch import attention, attention_paged, attention_varlen, dispatch, replace_sdpa  # noqa: E402

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
    q = half(1, 2, 8, 64)
    compiled = torch.compile(lambda q: attention(q + 1, q, q, is_causal=True) * 2, fullgraph=True, backend=graphs)
    compiled(q)
    assert graphs.targets == [["<built-in function add>", "attune.attention", "<built-in function mul>"]]
    assert service.problems == ["b1.h2.q8.d64.f16.causal"]


def test_what_no_kernel_computes_is_sdpa_in_the_graph(service: Service, graphs: Graphs) -> None:
    q = half(1, 2, 8, 64)
    torch.compile(lambda q: attention(q, q, q, dropout_p=0.5), fullgraph=True, backend=graphs)(q)
    torch.compile(lambda q: attention(q, q, q[..., :32]), fullgraph=True, backend=graphs)(q)
    assert [["scaled_dot_product_attention" in target for target in found][-1:] for found in graphs.targets] == [
        [True],
        [True],
    ]


def test_compiling_inside_a_block_replaces_and_counts(service: Service, graphs: Graphs) -> None:
    q = half(1, 2, 8, 64)
    compiled = torch.compile(lambda q: F.scaled_dot_product_attention(q, q, q), fullgraph=True, backend=graphs)
    with replace_sdpa() as replaced:
        compiled(q)
    compiled(q)
    assert graphs.targets == [["attune.attention"], ["<built-in function scaled_dot_product_attention>"]]
    assert replaced.stats.launched == 1


def test_further_blocks_compile_nothing_again(service: Service, graphs: Graphs) -> None:
    q = half(1, 2, 8, 64)
    compiled = torch.compile(lambda q: F.scaled_dot_product_attention(q, q, q), fullgraph=True, backend=graphs)
    with replace_sdpa() as first:
        compiled(q)
        with replace_sdpa() as second, replace_sdpa() as third:
            compiled(q)
    with replace_sdpa() as fourth:
        compiled(q)
    assert graphs.targets == [["attune.attention"]]
    assert [block.stats.launched for block in (first, second, third, fourth)] == [1, 0, 1, 1]


def test_a_scale_may_be_a_symbol(service: Service, graphs: Graphs) -> None:
    def attend(q: torch.Tensor) -> torch.Tensor:
        return attention(q, q, q, scale=1 / q.shape[-1] ** 0.5)

    compiled = torch.compile(attend, fullgraph=True, backend=graphs, dynamic=True)
    for dim in (64, 128):
        assert compiled(half(1, 2, 8, dim)).shape == (1, 2, 8, dim)
    assert service.problems == ["b1.h2.q8.d64.f16", "b1.h2.q8.d128.f16"]


def test_autocast_to_another_dtype_is_sdpas_in_the_graph(
    service: Service, graphs: Graphs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch, "autocasts", lambda query: True)
    q = half(1, 2, 8, 64)
    torch.compile(lambda q: attention(q, q, q), fullgraph=True, backend=graphs)(q)
    assert graphs.targets == [["<built-in function scaled_dot_product_attention>"]]


def test_gradients_are_sdpas_in_the_graph(service: Service, graphs: Graphs) -> None:
    q = half(1, 2, 8, 64).requires_grad_()
    torch.compile(lambda q: attention(q, q, q), fullgraph=True, backend=graphs)(q).sum().backward()
    assert graphs.targets == [["<built-in function scaled_dot_product_attention>"]]
    assert q.grad is not None


def test_lengths_may_be_dynamic(service: Service, graphs: Graphs) -> None:
    compiled = torch.compile(lambda q: attention(q, q, q), fullgraph=True, backend=graphs, dynamic=True)
    for length in (8, 9, 10):
        compiled(half(1, 2, length, 64))
    assert len(graphs.targets) == 1
    assert service.problems == [f"b1.h2.q{length}.d64.f16" for length in (8, 9, 10)]


def test_export_without_dynamo_keeps_the_operator(service: Service) -> None:
    class Model(torch.nn.Module):
        def forward(self, q: torch.Tensor) -> torch.Tensor:
            return attention(q, q, q)

    exported = torch.export.export(Model(), (half(1, 2, 8, 64),), strict=False)
    assert "torch.ops.attune.attention" in exported.graph_module.code


OPTIONS = ("bottom-right", 3, 2.0, torch.zeros(4), True, None, True)
VARLEN = (half(10, 4, 64), half(17, 2, 64), half(17, 2, 64), ints(0, 3, 10), ints(0, 9, 17), 7, 9)
PAGED = (half(2, 3, 4, 64), half(8, 16, 2, 64), half(8, 16, 2, 64), ints([0, 1], [2, -1]), ints(17, 16))


@pytest.mark.parametrize("lse", [False, True])
def test_torchs_own_checks_pass_for_every_operator(lse: bool) -> None:
    options = (*OPTIONS[:4], lse, *OPTIONS[5:])
    q, k = half(2, 4, 5, 64), half(2, 2, 9, 64)
    for query in (q, half(2, 5, 4, 64).transpose(1, 2)):
        torch.library.opcheck(torch.ops.attune.attention_options.default, (query, k, k, *options))
    torch.library.opcheck(torch.ops.attune.attention_varlen.default, (*VARLEN, *options))
    torch.library.opcheck(torch.ops.attune.attention_paged.default, (*PAGED, None, None, *options))
    tokens = (VARLEN[0], *PAGED[1:], ints(0, 3, 10), 7)
    torch.library.opcheck(torch.ops.attune.attention_paged.default, (*tokens, *options))


def test_each_form_is_one_operator_in_one_graph(service: Service, graphs: Graphs) -> None:
    sinks = torch.zeros(4)

    def both(q: torch.Tensor, k: torch.Tensor, *varlen: object) -> tuple:
        dense, lse = attention(q, k, k, causal="bottom-right", sinks=sinks, return_lse=True, enable_gqa=True)
        tokens = attention_varlen(*varlen, causal="bottom-right", enable_gqa=True)
        pages, _ = attention_paged(*PAGED, window=3, softcap=2.0, return_lse=True, enable_gqa=True)
        return dense + 0, lse + 0, tokens + 0, pages + 0

    compiled = torch.compile(both, fullgraph=True, backend=graphs)
    dense, lse, tokens, pages = compiled(half(1, 4, 8, 64), half(1, 2, 12, 64), *VARLEN)
    assert [target for target in graphs.targets[0] if target.startswith("attune.")] == [
        *("attune.attention_options", "attune.attention_varlen", "attune.attention_paged")
    ]
    assert service.problems == [
        "b1.h4.kvh2.q8.kv12.d64.f16.causal-br.sinks.lse",
        "b2.h4.kvh2.q7.kv10.d64.f16.causal-br.varlen",
        "b2.h4.kvh2.q3.kv32.d64.f16.window3.softcap2.bshd.page16.lse",
    ]
    assert [x.shape for x in (dense, lse, tokens, pages)] == [(1, 4, 8, 64), (1, 4, 8), (10, 4, 64), (2, 3, 4, 64)]


def test_totals_and_longest_lengths_may_be_dynamic(service: Service, graphs: Graphs) -> None:
    compiled = torch.compile(attention_varlen, fullgraph=True, backend=graphs, dynamic=True)
    for total in (33, 34, 39):
        q, bounds = half(total, 4, 64), ints(0, total)
        assert compiled(q, q, q, bounds, bounds, total, total).shape == q.shape
    assert len(graphs.targets) == 1
    assert service.problems == ["b1.h4.q40.d64.f16.varlen"]


def test_gradients_of_every_form_are_computed_without_a_kernel(service: Service, graphs: Graphs) -> None:
    q = tensor(1, 4, 8, 64, dtype=torch.float32).requires_grad_()
    torch.compile(lambda q: attention(q, q, q, softcap=2.0), fullgraph=True, backend=graphs)(q).sum().backward()
    assert q.grad is not None
    assert service.problems == []
    tokens = tensor(10, 4, 64, dtype=torch.float32).requires_grad_()
    bounds = ints(0, 3, 10)
    torch.compile(lambda q: attention_varlen(q, q, q, bounds, bounds, 7, 7), backend=graphs)(tokens).sum().backward()
    assert tokens.grad is not None
