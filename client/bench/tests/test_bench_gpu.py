"""What of the bench needs a GPU: run on a host with one, skipped elsewhere."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)

from attune.problem import Problem  # noqa: E402

from attune_bench.check import check, make_cases  # noqa: E402
from attune_bench.contestants import make_contestants  # noqa: E402
from attune_bench.contestants.contestant import NotApplicable, Skipped  # noqa: E402
from attune_bench.device import Device  # noqa: E402
from attune_bench.floors import measure_floors  # noqa: E402
from attune_bench.graph import Replay  # noqa: E402
from attune_bench.inputs import make_inputs, rotating_inputs  # noqa: E402
from attune_bench.records import Status  # noqa: E402
from attune_bench.reference import fp32_attention, naive_attention  # noqa: E402
from attune_bench.rounds import Rules  # noqa: E402
from attune_bench.row import Stage, bench_row  # noqa: E402
from attune_bench.work import Roofline  # noqa: E402

SDPA = ("sdpa", "flash", "cudnn", "efficient", "math")
SHAPES = [
    "b2.h4.q128.d64.f16",
    "b2.h4.q128.d64.f16.causal",
    "b2.h4.kvh2.q128.d64.bf16.causal",
    "b2.h4.kvh2.q1.kv300.d128.f16",
    "b2.h4.q113.d64.f16.bshd",
    "b2.h4.kvh2.q64.kv300.d128.bf16.kve4m3.bshd",
]


def parsed(text):
    return Problem.parse(text)


def in_double(problem, inputs):
    """fp64 on the host, head by head, without a line of `reference`."""
    group = problem.heads_q // problem.heads_kv
    q, k, v = (tensor.double().cpu() for tensor in (inputs.q, inputs.k, inputs.v))
    out = torch.zeros(q.shape, dtype=torch.float64)
    for b in range(problem.batch):
        for h in range(problem.heads_q):
            logits = q[b, h] @ k[b, h // group].T / problem.head_dim**0.5
            if problem.mask == "causal":
                logits = logits.masked_fill(torch.ones_like(logits).triu(1).bool(), float("-inf"))
            out[b, h] = logits.softmax(-1) @ v[b, h // group]
    return out


@pytest.mark.parametrize("text", SHAPES)
def test_the_reference_is_what_fp64_gives(text):
    problem = parsed(text)
    inputs = make_inputs(problem, seed=3, mean=1.0)
    torch.testing.assert_close(
        fp32_attention(problem, inputs).double().cpu(), in_double(problem, inputs), rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize("limit", [64, 3000])
def test_the_reference_does_not_depend_on_its_chunks(monkeypatch, limit):
    problem = parsed("b2.h4.kvh2.q113.d64.f16.causal")
    inputs = make_inputs(problem, seed=3)
    whole = fp32_attention(problem, inputs)
    monkeypatch.setattr("attune_bench.reference.MOST_LOGITS", limit)
    torch.testing.assert_close(fp32_attention(problem, inputs), whole)


def test_the_naive_computation_is_near_the_reference_but_rounded():
    problem = parsed("b2.h4.q128.d64.f16")
    inputs = make_inputs(problem, seed=3)
    error = (naive_attention(problem, inputs).float() - fp32_attention(problem, inputs)).abs().max().item()
    assert 0 < error < 1e-2


@pytest.mark.parametrize("name", [*SDPA, "flex", "flash4"])
@pytest.mark.parametrize("text", SHAPES[:4])
def test_a_contestant_is_right_or_says_why_it_cannot_run(name, text):
    problem = parsed(text)
    cases = make_cases(problem)
    (contestant,) = make_contestants([name], {})
    try:
        ready = contestant.prepare(problem, cases[0].inputs)
    except NotApplicable as reason:
        assert str(reason)
        return
    with ready.selected():
        _, why = check(problem, ready.run, cases)
    assert why == ""


def test_a_result_with_an_unwritten_row_is_wrong():
    problem = parsed("b2.h4.q128.d64.f16")
    cases = make_cases(problem)

    def forgetful(inputs):
        out = torch.empty_like(inputs.q)
        out[:, :, :-1] = fp32_attention(problem, inputs)[:, :, :-1]
        return out

    _, why = check(problem, forgetful, cases)
    assert why


def test_math_is_skipped_where_its_logits_would_not_fit():
    problem = parsed("b1.h32.q16384.d64.f16")
    (math,) = make_contestants(["math"], {})
    with pytest.raises(Skipped, match="would need about 160 GiB"):
        math.prepare(problem, make_inputs(parsed("b1.h1.q16.d64.f16"), seed=0))


def test_a_graph_runs_over_all_inputs_in_turn():
    seen = torch.zeros(4, device="cuda")
    marks = [torch.eye(4, device="cuda")[i] for i in range(4)]
    replay = Replay(lambda mark: seen.add_(mark), marks, runs=6)
    seen.zero_()
    replay.sample_us()
    assert seen.tolist() == [2, 2, 1, 1]


def test_small_inputs_are_rotated_and_differ():
    sets = rotating_inputs(parsed("b1.h1.q128.d64.f16"), l2_bytes=60 << 20, memory_bytes=1 << 40)
    assert len(sets) == 8
    assert not torch.equal(sets[0].q, sets[1].q)


def test_every_floor_is_measured():
    floors = measure_floors(Device(0).facts())
    for floor in (floors.launch_us, floors.read_gbs, floors.mma_tflops):
        assert 0 < floor.low <= floor.median <= floor.high


def test_a_row_has_everybody_with_a_time_or_a_reason():
    device = Device(0)
    contestants = make_contestants([*SDPA, "flex"], {})
    stage = Stage(device, device.facts(), Roofline(600, 4600), contestants, Rules(seconds=0.5))
    row = bench_row(stage, parsed("b1.h32.kvh8.q1.kv1024.d128.f16"), None)
    assert list(row.results) == [*SDPA, "flex"]
    for result in row.results.values():
        if result.status is Status.RIGHT:
            assert result.timing.us.median > 0 and result.eager.latency_us > 0 and result.accuracy.cases == 2
        else:
            assert result.reason
