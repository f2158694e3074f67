"""What FlashAttention 4 is asked; that it computes is seen where it is installed (test_bench_gpu.py)."""

from __future__ import annotations

import importlib.metadata
import pathlib
import sys
import types

import pytest
from attune.problem import Problem

from attune_bench import flash4
from attune_bench.options import CONTESTANTS, parse

CONTESTANTS_FOLDER = pathlib.Path(flash4.__file__).parent / "contestants"


@pytest.fixture
def version(monkeypatch):
    """Makes a version of the package installed, or none."""

    def install(number):
        def of(package):
            assert package == "flash-attn-4"
            if number is None:
                raise importlib.metadata.PackageNotFoundError(package)
            return number

        monkeypatch.setattr(importlib.metadata, "version", of)

    return install


@pytest.fixture
def contestant(monkeypatch, version):
    """The contestant beside a made-up torch and a library that notes its calls: (it, calls)."""
    version("4.0.0b36")
    calls = []

    def flash_attn_func(q, k, v, **options):
        calls.append(((q, k, v), options))
        return Tensor("o", "bshd"), None

    modules = {
        "torch": {"Tensor": Tensor},
        "attune_bench.inputs": {"Inputs": types.SimpleNamespace},
        "attune_bench.contestants": {"__path__": [str(CONTESTANTS_FOLDER)]},
        "flash_attn": {"__path__": []},
        "flash_attn.cute": {"flash_attn_func": flash_attn_func},
    }
    for name, members in modules.items():
        module = types.ModuleType(name)
        module.__dict__.update(members)
        monkeypatch.setitem(sys.modules, name, module)
    for name in ("attune_bench.contestants.contestant", "attune_bench.contestants.flash4"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    from attune_bench.contestants.flash4 import Flash4

    yield Flash4(), calls
    for name in ("attune_bench.contestants.contestant", "attune_bench.contestants.flash4"):
        sys.modules.pop(name, None)


class Tensor:
    """A tensor's name and the order of its dimensions."""

    def __init__(self, name, order):
        self.name, self.order = name, order

    def transpose(self, one, other):
        assert (one, other) == (1, 2)
        return Tensor(self.name, {"bhsd": "bshd", "bshd": "bhsd"}[self.order])

    def __eq__(self, other):
        return (self.name, self.order) == (other.name, other.order)


INPUTS = types.SimpleNamespace(**{name: Tensor(name, "bhsd") for name in "qkv"})


def test_it_takes_part_by_default_where_it_is_installed(version):
    version("4.0.0b36")
    assert parse(["--eight-bit"]).contestants == CONTESTANTS
    assert "flash4" in parse([]).contestants
    version(None)
    assert parse(["--eight-bit"]).contestants == tuple(name for name in CONTESTANTS if name != "flash4")


def test_it_may_be_asked_for_where_it_is_not_installed_and_then_says_so(contestant, version):
    version(None)
    assert parse(["--contestants", "flash4"]).contestants == ("flash4",)
    with pytest.raises(Exception, match="flash-attn-4 is not installed") as raised:
        contestant[0].prepare(Problem.parse("b2.h8.q512.d64.f16"), INPUTS)
    assert type(raised.value).__name__ == "NotApplicable"


@pytest.mark.parametrize(
    ("problem", "options"),
    [
        ("b2.h8.q512.d64.f16", {}),
        ("b2.h8.kvh2.q512.d64.f16.causal", {"causal": True}),
        ("b2.h8.q100.kv512.d64.f16.causal-br", {"causal": True}),
        ("b2.h8.q512.d64.f16.window100", {"window_size": (99, 0)}),
        ("b2.h8.q512.d64.f16.softcap20", {"softcap": 20.0}),
    ],
)
def test_it_gets_rows_before_heads_and_the_mask_as_it_names_it(contestant, problem, options):
    flash, calls = contestant
    ready = flash.prepare(Problem.parse(problem), INPUTS)
    assert calls == [(tuple(Tensor(name, "bshd") for name in "qkv"), {"softcap": 0.0, **options})]
    assert ready.run(INPUTS) == Tensor("o", "bhsd") and len(calls) == 2


@pytest.mark.parametrize(
    ("problem", "reason"),
    [
        ("b2.h8.q100.kv512.d64.f16.causal", "causal masks that end at the last key alone"),
        ("b2.h8.q512.d64.f16.lse", "no log-sum-exp"),
    ],
)
def test_what_it_is_not_asked_has_a_reason_and_is_not_called(contestant, problem, reason):
    flash, calls = contestant
    with pytest.raises(Exception, match=reason):
        flash.prepare(Problem.parse(problem), INPUTS)
    assert not calls
