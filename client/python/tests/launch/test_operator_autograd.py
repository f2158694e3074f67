"""attune's operators where autograd records: what requires grad is differentiable, everything else is a kernel's."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
from fake_service import Service

torch = pytest.importorskip("torch")

from tensors import bounds, half, ints, tensor  # noqa: E402

import attune  # noqa: E402
from attune.torch import attention, attention_paged, attention_varlen  # noqa: E402

NO_OPTIONS = (None, None, 0.0, None, False, None, True)
SINKS = (None, None, 0.0, torch.tensor([0.5, -1.0, 0.0, 2.0]), True, None, True)
TABLE, USED, BOUNDS = ints([0, 1], [2, 3]), ints(20, 32), bounds([3, 7])


def dense(q: Any, k: Any, v: Any) -> Any:
    return torch.ops.attune.attention(q, k, v, True, None, True)


def options(q: Any, k: Any, v: Any) -> Any:
    return torch.ops.attune.attention_options(q, k, v, *SINKS)


def varlen(q: Any, k: Any, v: Any) -> Any:
    return torch.ops.attune.attention_varlen(q, k, v, BOUNDS, BOUNDS, 7, 7, *NO_OPTIONS)


def paged(q: Any, k: Any, v: Any) -> Any:
    return torch.ops.attune.attention_paged(q, k, v, TABLE, USED, None, None, *NO_OPTIONS)


SHAPES = {
    dense: [(2, 4, 8, 16), (2, 2, 8, 16)],
    options: [(2, 4, 8, 16), (2, 2, 12, 16)],
    varlen: [(10, 4, 16), (10, 2, 16)],
    paged: [(2, 3, 4, 16), (4, 16, 2, 16)],
}
FUNCTIONS: dict[Callable, Callable] = {
    dense: lambda q, k, v: attention(q, k, v, is_causal=True, enable_gqa=True),
    options: lambda q, k, v: attention(q, k, v, sinks=SINKS[3], return_lse=True, enable_gqa=True),
    varlen: lambda q, k, v: attention_varlen(q, k, v, BOUNDS, BOUNDS, 7, 7, enable_gqa=True),
    paged: lambda q, k, v: attention_paged(q, k, v, TABLE, USED, enable_gqa=True),
}


def inputs(operator: Callable, dtype: torch.dtype) -> list[torch.Tensor]:
    of_q, of_k = SHAPES[operator]
    return [tensor(*shape, dtype=dtype, seed=seed) for seed, shape in enumerate((of_q, of_k, of_k))]


def outputs(result: Any) -> list[torch.Tensor]:
    return [part for part in (result if isinstance(result, tuple) else (result,)) if part.numel()]


def gradients(function: Callable, given: list[torch.Tensor]) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    leaves = [x.clone().requires_grad_() for x in given]
    found = outputs(function(*leaves))
    sum((part * torch.arange(part.numel()).view_as(part)).sum() for part in found).backward()
    return [part.detach() for part in found], [leaf.grad for leaf in leaves]


@pytest.mark.filterwarnings("ignore::attune.torch.AttuneWarning")
@pytest.mark.parametrize("operator", SHAPES)
def test_what_requires_grad_has_the_functions_results_and_gradients(service: Service, operator: Callable) -> None:
    given = inputs(operator, torch.float32)
    found, of_operator = gradients(operator, given)
    expected, of_function = gradients(FUNCTIONS[operator], given)
    for one, other in zip([*found, *of_operator], [*expected, *of_function], strict=True):
        torch.testing.assert_close(one, other)
    assert service.problems == []


@pytest.mark.parametrize("operator", SHAPES)
def test_it_is_said_once_and_torch_says_nothing_of_its_own(service: Service, operator: Callable) -> None:
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        gradients(operator, inputs(operator, torch.float16))
        gradients(operator, inputs(operator, torch.float16))
    (warning,) = given
    assert warning.category is attune.AttuneWarning
    assert "(grad): an input requires grad" in str(warning.message)
    assert service.launches == []


@pytest.mark.parametrize("operator", SHAPES)
def test_what_does_not_require_grad_is_launched(service: Service, operator: Callable) -> None:
    given = inputs(operator, torch.float16)
    with attune.replace_sdpa() as replaced:
        operator(*given)
        with torch.no_grad():
            operator(*given)
            operator(*(x.clone().requires_grad_() for x in given))
        with torch.inference_mode():
            operator(*given)
    assert (replaced.stats.launched, replaced.stats.fallbacks, len(service.problems)) == (4, {}, 1)


@pytest.mark.filterwarnings("ignore::attune.torch.AttuneWarning")
def test_sinks_that_require_grad_are_enough(service: Service) -> None:
    q, sinks = half(1, 4, 8, 16), torch.zeros(4, requires_grad=True)
    out, _ = torch.ops.attune.attention_options(q, q, q, *SINKS[:3], sinks, *SINKS[4:])
    out.float().sum().backward()
    assert sinks.grad is not None
    assert sinks.grad.abs().sum() > 0
    assert service.launches == []


@pytest.mark.filterwarnings("ignore::attune.torch.AttuneWarning")
@pytest.mark.parametrize("operator", [dense, options])
def test_compiled_it_is_differentiable_too(service: Service, operator: Callable) -> None:
    torch._dynamo.reset()
    given = inputs(operator, torch.float32)
    found, of_compiled = gradients(torch.compile(operator, fullgraph=True, backend="aot_eager"), given)
    expected, of_function = gradients(FUNCTIONS[operator], given)
    for one, other in zip([*found, *of_compiled], [*expected, *of_function], strict=True):
        torch.testing.assert_close(one, other)


def test_compiled_without_grad_it_is_the_operator(service: Service) -> None:
    torch._dynamo.reset()
    given = inputs(dense, torch.float16)
    compiled = torch.compile(dense, fullgraph=True, backend="aot_eager")
    with attune.replace_sdpa() as replaced:
        for _ in range(2):
            compiled(*given)
    assert replaced.stats.launched == 2


@pytest.mark.parametrize("operator", SHAPES)
def test_torchs_own_checks_pass_of_what_requires_grad(service: Service, operator: Callable) -> None:
    q, k, v = (x.requires_grad_() for x in inputs(operator, torch.float32))
    checks = ("test_schema", "test_autograd_registration", "test_faketensor")
    if operator is dense:
        torch.library.opcheck(torch.ops.attune.attention.default, (q, k, v, True, None, True), test_utils=checks)
    if operator is options:
        torch.library.opcheck(torch.ops.attune.attention_options.default, (q, k, v, *SINKS), test_utils=checks)
    if operator is varlen:
        given = (q, k, v, BOUNDS, BOUNDS, 7, 7, *NO_OPTIONS)
        torch.library.opcheck(torch.ops.attune.attention_varlen.default, given, test_utils=checks)
    if operator is paged:
        given = (q, k, v, TABLE, USED, None, None, *NO_OPTIONS)
        torch.library.opcheck(torch.ops.attune.attention_paged.default, given, test_utils=checks)
