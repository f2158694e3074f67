"""Problems with K and V of 8 bits: what is asked for, and what each contestant reads."""

from __future__ import annotations

import pytest
from attune.problem import Problem
from runs import right, row

from attune_bench.grid import EIGHT_BIT, read_problems, with_16_bits
from attune_bench.options import default_contestants, parse
from attune_bench.run import asked, chosen_problems

TEXT = "b1.h4.kvh2.q1.kv64.d32.f16.kve4m3"


def test_the_grid_of_8_bits_has_nothing_else_and_twins_that_differ():
    problems = read_problems(EIGHT_BIT)
    assert all(problem.kv_dtype for problem in problems)
    assert chosen_problems(parse(["--eight-bit"])) == problems
    assert str(with_16_bits(Problem.parse(TEXT))) == TEXT.removesuffix(".kve4m3")


def test_the_kernel_for_16_bits_takes_part_by_default_where_there_are_8():
    assert "attune16" in parse(["--eight-bit"]).contestants
    assert "attune16" not in parse([]).contestants
    assert parse(["--eight-bit", "--contestants", "attune,flash"]).contestants == ("attune", "flash")


def test_the_daemon_is_asked_for_both_once_and_for_one_where_nobody_needs_the_other():
    problems = [Problem.parse(text) for text in (TEXT, TEXT.replace("e4m3", "e5m2"), "b1.h1.q128.d64.f16")]
    assert asked(problems, default_contestants(eight_bit=True)) == [*problems, with_16_bits(problems[0])]
    assert asked(problems, default_contestants()) == problems


def test_attunes_own_kernel_for_16_bits_is_not_the_fastest_of_others():
    made = row(TEXT, right("attune", 10.0), right("attune16", 11.0), right("sdpa", 20.0))
    assert made.best_of_torch() == "sdpa"
    assert made.speedup("attune16") == pytest.approx(1.1)


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize("kv_dtype", ["e4m3", "e5m2"])
@pytest.mark.parametrize("layout", ["", ".bshd"])
def test_16_bits_have_the_very_values_of_the_elements_and_their_scales(dtype, kv_dtype, layout):
    torch = pytest.importorskip("torch")
    from attune_bench.inputs import DTYPES, quantised

    problem = Problem.parse(f"b2.h4.kvh4.q3.kv5.d32.{dtype}{layout}.kv{kv_dtype}")
    q, k, v = (torch.randn(2, 5, 4, 32).to(DTYPES[dtype]).transpose(1, 2) for _ in range(3))
    if not layout:
        q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    made = quantised(problem, q, k, v)
    cache = made.cache
    for wide, elements, scale, given in ((made.k, cache.k, cache.k_scale, k), (made.v, cache.v, cache.v_scale, v)):
        assert torch.equal(wide.double(), elements.double() * scale.double()[:, None, None])
        assert wide.dtype is q.dtype and elements.itemsize == 1 and scale.dtype is torch.float32
        assert wide.stride() == elements.stride() == given.stride()
        assert len(set(scale.tolist())) > 1
        assert (wide - given).abs().max() < 0.5


def test_each_of_attunes_contestants_reads_its_own_cache():
    torch = pytest.importorskip("torch")
    from attune_bench.contestants.contestant import NotApplicable
    from attune_bench.contestants.ours import Ours16, arguments, scales
    from attune_bench.inputs import quantised

    problem = Problem.parse(TEXT)
    made = quantised(problem, *(torch.randn(1, heads, 64, 32).half() for heads in (4, 2, 2)))
    assert arguments(problem, made) == (made.q, made.cache.k, made.cache.v)
    assert scales(problem, made) == {"k_scale": made.cache.k_scale, "v_scale": made.cache.v_scale}
    twin = with_16_bits(problem)
    assert arguments(twin, made) == (made.q, made.k, made.v) and scales(twin, made) == {}
    ours = Ours16({twin: "nobody tuned it"})
    with pytest.raises(NotApplicable, match="nobody tuned it"):
        ours.prepare(problem, made)
    with pytest.raises(NotApplicable, match="that is 'attune'"):
        ours.prepare(twin, made)
