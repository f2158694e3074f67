"""When SDPA computes instead, and what is said about it."""

from __future__ import annotations

import gc
import warnings
import weakref
from collections.abc import Iterator

import pytest
from fake_service import Clock, Service

from attune.cuda import CudaError
from attune.errors import FailedPrecondition, NotFound, Unreachable

torch = pytest.importorskip("torch")

from tensors import half, tensor  # noqa: E402

import attune.torch  # noqa: E402
from attune.torch import AttuneWarning, attention, dispatch, process, replace_sdpa  # noqa: E402
from attune.torch.dispatch import attend  # noqa: E402
from attune.torch.fallback import Reason, Stats  # noqa: E402
from attune.torch.problem_of_tensors import refusal  # noqa: E402

sdpa = torch.nn.functional.scaled_dot_product_attention


def fallen_back(*arguments: object, **options: object) -> tuple[torch.Tensor, dict[str, int]]:
    """The result and the reasons."""
    stats = Stats()
    given = {"attn_mask": None, "dropout_p": 0.0, "is_causal": False, "scale": None, "enable_gqa": False, **options}
    return attend(stats, *arguments, *given.values()), dict(stats.fallbacks)


@pytest.mark.parametrize(
    ("reason", "options"),
    [
        ("attn_mask", {"attn_mask": torch.ones(8, 8, dtype=torch.bool).tril()}),
        ("dropout", {"dropout_p": 1.0}),
        ("scale", {"scale": -0.5}),
    ],
)
@pytest.mark.filterwarnings("ignore::attune.torch.AttuneWarning")
def test_what_no_kernel_computes_is_sdpas(service: Service, reason: str, options: dict) -> None:
    q = half(1, 2, 8, 64)
    result, reasons = fallen_back(q, q, q, **options)
    assert reasons == {reason: 1}
    assert torch.equal(result, sdpa(q, q, q, **options))
    assert service.problems == []


@pytest.mark.parametrize("options", [{"scale": -0.5}, {"dtype": torch.float32}])
@pytest.mark.filterwarnings("ignore::attune.torch.AttuneWarning")
def test_why_no_kernel_computes_a_signature_is_found_out_once(
    service: Service, options: dict, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    monkeypatch.setattr(dispatch, "refusal", lambda *given: asked.append(given) or refusal(*given))
    given = {"scale": options.get("scale")}
    for seed in range(3):
        q = tensor(1, 2, 8, 64, dtype=options.get("dtype", torch.float16), seed=seed)
        result, reasons = fallen_back(q, q, q, **given)
        assert torch.equal(result, sdpa(q, q, q, **given))
        assert sum(reasons.values()) == 1
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("reason", "shapes"),
    [
        ("shape", [(8, 64), (8, 64), (8, 64)]),
        ("shape", [(1, 2, 8, 64), (1, 2, 8, 64), (1, 2, 8, 32)]),
        ("shape", [(2, 2, 8, 64), (1, 2, 8, 64), (1, 2, 8, 64)]),
        ("shape", [(1, 4, 8, 64), (1, 1, 8, 64), (1, 1, 8, 64)]),
        ("shape", [(0, 2, 8, 64), (0, 2, 8, 64), (0, 2, 8, 64)]),
        ("shape", [(1, 2, 0, 64), (1, 2, 8, 64), (1, 2, 8, 64)]),
        ("shape", [(1, 2, 8, 64), (1, 2, 0, 64), (1, 2, 0, 64)]),
        ("shape", [(2, 8, 64), (2, 0, 64), (2, 0, 64)]),
        ("shape", [(1, 1, 2, 2048), (1, 1, 2, 2048), (1, 1, 2, 2048)]),
        ("shape", [(1, 1, 2, 1025), (1, 1, 2, 1025), (1, 1, 2, 1025)]),
    ],
)
@pytest.mark.filterwarnings("ignore::attune.torch.AttuneWarning")
def test_shapes_that_are_no_problem_are_sdpas(service: Service, reason: str, shapes: list) -> None:
    tensors = [half(*shape) for shape in shapes]
    result, reasons = fallen_back(*tensors)
    assert reasons == {reason: 1}
    torch.testing.assert_close(result, sdpa(*tensors), rtol=0, atol=0, equal_nan=True)
    assert service.problems == []


def test_keys_without_heads_are_refused(service: Service) -> None:
    q, kv = half(1, 2, 8, 64), half(1, 0, 8, 64)  # torch's SDPA on the CPU ends the process
    assert refusal(q, kv, kv, None, 0.0, None, True)[0] is Reason.SHAPE


@pytest.mark.filterwarnings("ignore::attune.torch.AttuneWarning")
def test_other_dtypes_are_sdpas(service: Service) -> None:
    q = tensor(1, 2, 8, 64, dtype=torch.float32)
    assert fallen_back(q, q, q)[1] == {"dtype": 1}


@pytest.mark.filterwarnings("ignore::attune.torch.AttuneWarning")
def test_gradients_are_sdpas(service: Service) -> None:
    q = half(1, 2, 8, 64).requires_grad_()
    result, reasons = fallen_back(q, q, q)
    assert reasons == {"grad": 1}
    result.sum().backward()
    assert q.grad is not None


@pytest.mark.filterwarnings("ignore")
def test_vmap_is_sdpas_though_its_shape_was_launched_before(service: Service) -> None:
    q = half(3, 1, 2, 8, 64)
    attention(q[0], q[0], q[0])
    stats = Stats()
    result = torch.vmap(lambda x: attend(stats, x, x, x, None, 0.0, False, None, False))(q)
    assert (stats.launched, dict(stats.fallbacks)) == (0, {"subclass": 1})
    assert result.shape == q.shape


@pytest.mark.filterwarnings("ignore::attune.torch.AttuneWarning")
def test_a_dispatch_mode_sees_sdpa(service: Service) -> None:
    from torch.utils.flop_counter import FlopCounterMode

    q = half(1, 2, 8, 64)
    attention(q, q, q)
    with FlopCounterMode(display=False):
        assert fallen_back(q, q, q)[1] == {"subclass": 1}


def test_cpu_tensors_are_sdpas() -> None:
    attune.torch.configure()
    q = half(1, 2, 8, 64)
    with pytest.warns(AttuneWarning, match="the inputs are on cpu, cpu, cpu; they must be on one CUDA device"):
        assert torch.equal(attention(q, q, q), sdpa(q, q, q))


def test_each_reason_is_warned_of_once(service: Service) -> None:
    q = half(1, 2, 8, 64)
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        for _ in range(3):
            attention(q, q, q, scale=-0.5)
            attention(q, q, q, dropout_p=1.0)
    assert sorted(str(one.message).split("(")[1].split(")")[0] for one in given) == ["dropout", "scale"]
    assert all(one.filename == __file__ for one in given)


@pytest.mark.filterwarnings("ignore::attune.torch.AttuneWarning")
@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (NotFound("no answer"), "no_answer"),
        (Unreachable("nobody is there"), "unreachable"),
        (FailedPrecondition("no CUDA driver"), "not_loaded"),
    ],
)
def test_a_shape_without_a_kernel_is_asked_for_again_after_the_hold(
    service: Service, clock: Clock, error: Exception, reason: str
) -> None:
    q = half(1, 2, 8, 64)
    service.refuses_with = error
    for _ in range(3):
        assert fallen_back(q, q, q)[1] == {reason: 1}
    assert len(service.problems) == 1
    clock.now += 31
    service.refuses_with = None
    assert fallen_back(q, q, q)[1] == {}
    assert len(service.launches) == 1


@pytest.mark.filterwarnings("ignore::attune.torch.AttuneWarning")
def test_an_unreachable_service_is_not_asked_for_other_shapes_either(service: Service, clock: Clock) -> None:
    service.refuses_with = Unreachable("nobody is there")
    for length in (8, 9, 10):
        q = half(1, 2, length, 64)
        assert fallen_back(q, q, q)[1] == {"unreachable": 1}
    assert len(service.problems) == 1


@pytest.mark.filterwarnings("ignore::attune.torch.AttuneWarning")
def test_a_shape_without_an_answer_does_not_stand_in_for_others(service: Service) -> None:
    q = half(1, 2, 8, 64)
    service.refuses_with = NotFound("no answer")
    fallen_back(q, q, q)
    service.refuses_with = None
    fallen_back(half(1, 2, 9, 64), q, q)
    assert len(service.launches) == 1


@pytest.mark.filterwarnings("ignore")
def test_nested_tensors_are_sdpas(service: Service) -> None:
    strided = torch.nested.nested_tensor([half(2, length, 64).float() for length in (3, 5)])
    rows = [half(length, 2, 64).float() for length in (3, 5)]
    jagged = torch.nested.nested_tensor(rows, layout=torch.jagged).transpose(1, 2)
    for q in (strided, jagged):
        result, reasons = fallen_back(q, q, q)
        assert reasons == {"layout": 1}
        for found, wanted in zip(result.unbind(), sdpa(q, q, q).unbind(), strict=True):
            assert torch.equal(found, wanted)


@pytest.mark.filterwarnings("ignore::attune.torch.AttuneWarning")
def test_a_negated_view_is_sdpas_though_its_shape_was_launched_before(service: Service) -> None:
    q = half(1, 2, 8, 64)
    attention(q, q, q)
    negated = torch._neg_view(q)
    assert fallen_back(negated, q, q)[1] == fallen_back(q, q, negated)[1] == {"layout": 1}
    torch.testing.assert_close(fallen_back(q, q, negated)[0], -sdpa(q, q, q))


@pytest.mark.filterwarnings("ignore::attune.torch.AttuneWarning")
def test_forward_mode_differentiation_is_sdpas(service: Service) -> None:
    q = half(1, 2, 8, 64)
    attention(q, q, q)
    with torch.autograd.forward_ad.dual_level():
        assert fallen_back(q, q, q)[1] == {"grad": 1}


@pytest.mark.filterwarnings("ignore::attune.torch.AttuneWarning")
@pytest.mark.parametrize("options", [{}, {"softcap": 2.0}])
def test_a_launch_that_the_driver_refuses_is_sdpas(service: Service, clock: Clock, options: dict) -> None:
    q = half(1, 2, 8, 64)
    service.launching_fails_with = CudaError("out of memory")
    with replace_sdpa() as replaced:
        for _ in range(3):
            assert attention(q, q, q, **options).shape == q.shape
        assert (replaced.stats.launched, replaced.stats.fallbacks) == (0, {"not_launched": 3})
        service.launching_fails_with = None
        clock.now += 31
        attention(q, q, q, **options)
    assert replaced.stats.launched == 1


@pytest.mark.filterwarnings("ignore::attune.torch.AttuneWarning")
def test_a_kernel_that_was_launched_before_may_be_refused(service: Service) -> None:
    q = half(1, 2, 8, 64)
    assert fallen_back(q, q, q)[1] == {}
    (entry,) = process.calls.values()
    entry.kernel.fails_with = CudaError("an illegal address was encountered")
    for _ in range(2):
        result, reasons = fallen_back(q, q, q)
        assert reasons == {"not_launched": 1}
        assert torch.equal(result, sdpa(q, q, q))


@pytest.fixture
def deterministic() -> Iterator[None]:
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


@pytest.mark.filterwarnings("ignore::attune.torch.AttuneWarning")
def test_deterministic_calls_stay_with_what_computed_them_first(
    service: Service, clock: Clock, deterministic: None
) -> None:
    first, second = half(1, 2, 8, 64), half(1, 2, 9, 64)
    assert fallen_back(first, first, first)[1] == {}
    service.refuses_with = NotFound("no answer")
    assert fallen_back(second, second, second)[1] == {"deterministic": 1}
    service.refuses_with = None
    clock.now += 1000
    assert fallen_back(first, first, first)[1] == {}
    assert fallen_back(second, second, second)[1] == {"deterministic": 1}
    assert len(service.problems) == 2


@pytest.mark.filterwarnings("ignore::attune.torch.AttuneWarning")
@pytest.mark.parametrize("options", [{}, {"softcap": 2.0}])
def test_calls_that_become_deterministic_stay_with_what_computes_them_then(
    service: Service, clock: Clock, request: pytest.FixtureRequest, options: dict
) -> None:
    first, second, never = half(1, 2, 8, 64), half(1, 2, 9, 64), half(1, 1, 2, 2048)
    attention(first, first, first, **options)
    service.refuses_with = NotFound("no answer")
    attention(second, second, second, **options)
    attention(never, never, never, **options)
    request.getfixturevalue("deterministic")
    with replace_sdpa() as replaced:
        for length in (first, second, never):
            attention(length, length, length, **options)
        service.refuses_with = None
        service.artifact, service.served = "second", 2
        clock.now += 1000
        for length in (first, second, never):
            attention(length, length, length, **options)
    assert (replaced.stats.launched, replaced.stats.fallbacks) == (2, {"deterministic": 2, "shape": 2})
    entries = [entry for entry in process.calls.values() if entry.key is not None]
    assert [entry.pinned for entry in entries] == [True, True]


@pytest.mark.filterwarnings("ignore::attune.torch.AttuneWarning")
def test_what_is_remembered_holds_no_tensor(service: Service) -> None:
    service.refuses_with = NotFound("no answer")
    q = half(1, 2, 8, 64)
    gc.disable()
    try:
        fallen_back(q, q, q)
        fallen_back(q, q, q)
        fallen_back(q, q, q, dropout_p=1.0)
        alive = weakref.ref(q)
        del q
        assert alive() is None
    finally:
        gc.enable()
