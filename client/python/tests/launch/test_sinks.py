"""Sinks in 16 bits: launched in fp32."""

from __future__ import annotations

import pytest
from fake_service import Service

torch = pytest.importorskip("torch")

from tensors import half  # noqa: E402

import attune  # noqa: E402
from attune.torch import direct, dispatch  # noqa: E402
from attune.torch.sinks import in_fp32  # noqa: E402

VALUES = [0.5, -1.25]


def sinks(dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
    return torch.tensor(VALUES, dtype=dtype)


def launched(service: Service, given: torch.Tensor) -> int:
    """The address of the sinks that a call launches with."""
    q = half(1, 2, 8, 64)
    with torch.no_grad():
        attune.attention(q, q, q, sinks=given)
    return service.launches[-1][6][0]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_launch_has_them_in_fp32(service: Service, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    given, casts = torch.nn.Parameter(sinks(dtype)), []
    for module in (dispatch, direct):
        monkeypatch.setattr(module, "in_fp32", lambda tensor: casts.append(in_fp32(tensor)) or casts[-1])
    first = launched(service, given)
    monkeypatch.setattr(dispatch, "attend_call", lambda *call: pytest.fail("looks"))
    given.data.fill_(2.0)
    second = launched(service, given)
    for cast, address, values in zip(casts, (first, second), (VALUES, [2.0, 2.0]), strict=True):
        assert (cast.data_ptr(), cast.dtype, cast.tolist()) == (address, torch.float32, values)
    assert service.problems == ["b1.h2.q8.d64.f16.sinks"]


def test_those_in_fp32_are_launched_as_they_are(service: Service) -> None:
    given = sinks(torch.float32)
    assert launched(service, given) == given.data_ptr()


def test_what_was_written_to_is_cast_again() -> None:
    given = torch.nn.Parameter(sinks())
    in_fp32(given)
    given.data.fill_(3.0)
    assert in_fp32(given).tolist() == [3.0, 3.0]


@pytest.mark.filterwarnings("ignore::attune.torch.AttuneWarning")
def test_without_a_kernel_they_count_the_same(service: Service) -> None:
    q = half(1, 2, 8, 64)
    out = attune.attention(q, q, q, sinks=sinks(), scale=-0.5)
    torch.testing.assert_close(out, attune.attention(q, q, q, sinks=sinks(torch.float32), scale=-0.5))
