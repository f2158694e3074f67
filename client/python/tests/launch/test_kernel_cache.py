"""What the service is asked, and which of its devices it is asked about."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

import pytest

from attune.errors import InvalidArgument
from attune.problem import Problem
from attune.values import Backend, Policy, Provenance

torch = pytest.importorskip("torch")

from attune.torch import kernel_cache  # noqa: E402
from attune.torch.fallback import Reason, Unsuitable  # noqa: E402
from attune.torch.kernel_cache import KernelCache  # noqa: E402
from attune.torch.settings import ACCEPTABLE, Settings, configure  # noqa: E402

PROBLEM = Problem.parse("b1.h2.q16.d64.f16")


@dataclasses.dataclass
class FakeClient:
    devices_known: list[Any]
    asked: list[dict[str, Any]] = dataclasses.field(default_factory=list)

    def best(self, problem: Problem, **options: Any) -> Any:
        self.asked.append(options)
        return SimpleNamespace(artifact_sha256="known")

    def devices(self) -> list[Any]:
        return self.devices_known


def known(identity: str, model: str = "NVIDIA L4", uuid: str = "", backend: Backend = Backend.CUDA) -> Any:
    return SimpleNamespace(id=identity, model=model, uuid=uuid, backend=backend)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """This process's GPU; every artifact can be loaded, none has been."""
    properties = SimpleNamespace(name="NVIDIA L4", uuid="1234-abcd", loaded=set())
    monkeypatch.setattr(kernel_cache.torch.cuda, "get_device_properties", lambda index: properties)
    monkeypatch.setattr(
        kernel_cache, "modules", lambda: SimpleNamespace(has=lambda sha256: sha256 in properties.loaded)
    )
    monkeypatch.setattr(kernel_cache, "load", lambda answer, device: SimpleNamespace(answer=answer, device=device))
    return properties


def ask(client: FakeClient, device: str | None = None) -> list[dict[str, Any]]:
    KernelCache(Settings(client, device, Policy.HOT, ACCEPTABLE, 30.0)).kernel(PROBLEM, 0)  # type: ignore[arg-type]
    return client.asked


def test_the_artifact_is_fetched_only_when_it_is_not_loaded(gpu: SimpleNamespace) -> None:
    assert [options.get("artifact", False) for options in ask(FakeClient([known("cuda:0")]))] == [False, True]
    gpu.loaded.add("known")
    assert [options.get("artifact", False) for options in ask(FakeClient([known("cuda:0")]))] == [False]


def test_guesses_are_not_accepted_unless_asked_for(gpu: SimpleNamespace) -> None:
    asked = ask(FakeClient([known("cuda:0")]))
    assert Provenance.HEURISTIC not in asked[0]["acceptable"]
    assert Provenance.NEAREST in asked[0]["acceptable"]


def test_the_device_of_the_same_uuid_is_asked_about(gpu: SimpleNamespace) -> None:
    client = FakeClient([known("cuda:0", uuid="GPU-0000"), known("cuda:1", uuid="GPU-1234-abcd")])
    assert ask(client)[0]["device"] == "cuda:1"


def test_without_it_the_first_of_the_same_model_is(gpu: SimpleNamespace) -> None:
    client = FakeClient([known("cuda:0", model="NVIDIA T4"), known("cuda:1"), known("cuda:2")])
    assert ask(client)[0]["device"] == "cuda:1"


def test_a_service_without_such_a_device_has_no_answer(gpu: SimpleNamespace) -> None:
    client = FakeClient([known("opencl:0", backend=Backend.OPENCL), known("cuda:0", model="NVIDIA T4")])
    with pytest.raises(Unsuitable, match=r"cuda:0 is a NVIDIA L4; the service knows cuda:0 \(NVIDIA T4\)") as raised:
        ask(client)
    assert raised.value.reason is Reason.NO_ANSWER


def test_a_device_that_was_configured_is_believed(gpu: SimpleNamespace) -> None:
    assert ask(FakeClient([]), device="cuda:7")[0]["device"] == "cuda:7"


def test_configure_names_a_provenance_that_does_not_exist() -> None:
    with pytest.raises(InvalidArgument, match="provenance is 'GUESS'; it must be one of EXACT"):
        configure(acceptable=["GUESS"])
