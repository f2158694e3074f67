"""What the rows of a run of replaced are held to, and the tensors that it makes."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from attune_bench.inputs import Inputs  # noqa: E402
from attune_bench.replaced import KERNEL, PACKED, SLICED, markdown, packed, sliced, verdicts  # noqa: E402


def row(block: float = 1.0, kernel: float | None = 1.0, launched: bool = True, views: dict | None = None) -> dict:
    return {
        "problem": "b1.h1.q128.d64.f16",
        "us": {"sdpa": 10.0, "replace_sdpa": 10.0 / block},
        "launched": launched,
        "block_vs_sdpa": block,
        "kernel_vs_sdpa": kernel,
        "views": views or {},
    }


def broken(*rows: dict) -> list[str]:
    """Which bounds have a row."""
    return [name for name, found in verdicts(rows).items() if isinstance(found, list) and found]


def test_a_row_may_be_two_percent_slower():
    assert broken(row(block=0.98)) == []
    assert broken(row(block=0.979)) == ["slower than 0.98x of SDPA"]


def test_a_kernel_that_is_three_percent_faster_is_to_be_used():
    assert broken(row(kernel=1.029, launched=False)) == []
    assert broken(row(kernel=1.03, launched=False)) == ["1.03x as fast, and not used"]
    assert broken(row(kernel=1.5)) == []


def test_a_problem_without_a_kernel_is_sdpas():
    assert broken(row(kernel=None, launched=False)) == []


def test_views_may_take_two_percent_more_than_dense_tensors():
    assert broken(row(views={SLICED: 1.02, PACKED: 1.0})) == []
    assert broken(row(views={SLICED: 1.021})) == ["views beyond 1.02x of dense"]


def test_the_table_says_who_runs():
    assert [line.split(" | ")[-1] for line in markdown([row(), row(launched=False)]).splitlines()[2:]] == [
        "attune |",
        "SDPA |",
    ]
    assert KERNEL in markdown([row()])


@pytest.fixture
def dense() -> Inputs:
    q, k, v = (torch.randn(2, heads, 5, 8) for heads in (4, 2, 2))
    return Inputs(q, k, v)


@pytest.mark.parametrize("views", [sliced, packed])
def test_views_have_the_dense_tensors_values_and_are_views(dense, views):
    made = views(dense)
    for name in ("q", "k", "v"):
        assert torch.equal(getattr(made, name), getattr(dense, name))
    assert not made.k.is_contiguous()


def test_packed_tensors_are_one(dense):
    made = packed(dense)
    assert len({tensor.untyped_storage().data_ptr() for tensor in (made.q, made.k, made.v)}) == 1
