"""What the service is asked, which of its devices it is asked about, and what answers in its place."""

from __future__ import annotations

import dataclasses
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from fake import FakeServer, answer, message
from fake_service import Clock

import attune
from attune.background import service
from attune.background.reason import Reason, Unsuitable
from attune.background.service import Gpu, Service
from attune.background.settings import ACCEPTABLE, Settings, configure
from attune.errors import InvalidArgument, Unreachable
from attune.lookup import Query, best
from attune.problem import Problem
from attune.values import ArtifactState, Backend, Policy, Provenance

PROBLEM = Problem.parse("b2.h8.q512.d64.f16")


@dataclasses.dataclass
class FakeClient:
    devices_known: list[Any]
    asked: list[Query] = dataclasses.field(default_factory=list)
    devices_asked: int = 0
    state: ArtifactState = ArtifactState.READY

    def sibling(self) -> FakeClient:
        return self

    @property
    def lookup(self) -> Any:
        return SimpleNamespace(ask=lambda query: query)

    def carry_out(self, query: Query) -> Any:
        self.asked.append(query)
        return SimpleNamespace(artifact_sha256="known", artifact_state=self.state)

    def devices(self) -> list[Any]:
        self.devices_asked += 1
        return self.devices_known

    def close(self) -> None:
        self.closed = True


def known(identity: str, model: str = "NVIDIA L4", uuid: str = "", backend: Backend = Backend.CUDA) -> Any:
    return SimpleNamespace(id=identity, model=model, uuid=uuid, backend=backend)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """This process's GPU; no artifact has been loaded but those in `loaded`."""
    properties = SimpleNamespace(loaded=set())
    monkeypatch.setattr(service, "modules", lambda: SimpleNamespace(has=lambda sha256: sha256 in properties.loaded))
    return properties


def gpu_of(index: int) -> Gpu:
    return Gpu("NVIDIA L4", "1234-abcd")


def settings(client: Any, device: str | None = None) -> Settings:
    return Settings(client, device, Policy.HOT, ACCEPTABLE, 30.0)


def ask(client: FakeClient, device: str | None = None) -> list[Query]:
    Service(settings(client, device), gpu_of).answer(PROBLEM, 0, kept=True)
    return client.asked


def test_the_artifact_is_fetched_only_when_it_is_not_loaded(gpu: SimpleNamespace) -> None:
    assert [query.artifact for query in ask(FakeClient([known("cuda:0")]))] == [False, True]
    gpu.loaded.add("known")
    assert [query.artifact for query in ask(FakeClient([known("cuda:0")]))] == [False]


def test_the_artifact_of_what_is_being_compiled_is_not_fetched(gpu: SimpleNamespace) -> None:
    client = FakeClient([known("cuda:0")], state=ArtifactState.COMPILING)
    assert [query.artifact for query in ask(client)] == [False]


def test_an_answer_that_is_kept_without_its_code_is_none(gpu: SimpleNamespace, server: FakeServer) -> None:
    server.responses["GetBest"] = answer(artifact_state=2)
    with attune.Client(server.address, deadline=5.0) as client:
        client.best(PROBLEM, device="cuda:0", artifact=True)
        server.stop()
        asking = Service(dataclasses.replace(settings(client, "cuda:0"), acceptable=()), gpu_of)
        with pytest.raises(Unreachable):
            asking.answer(PROBLEM, 0, kept=True)
        asking.close()


def test_a_question_waits_for_code_as_long_as_it_says() -> None:
    with attune.Client("localhost:1") as client:
        assert next(client.lookup.ask(best(PROBLEM, wait=5.0))).wait == 5.0


def told(client: attune.Client) -> bool:
    """What is said of code that is waited for."""
    ended, said = threading.Event(), []
    asking = Service(settings(client, "cuda:0"), gpu_of)
    asking.when_compiled(PROBLEM, 0, lambda answered: said.append(answered) or ended.set())
    assert ended.wait(30)
    asking.close()
    return said[0]


def test_the_service_says_when_code_is_compiled(server: FakeServer) -> None:
    with attune.Client(server.address, deadline=5.0) as client:
        assert told(client)
    (asked,) = server.asked("GetBest")
    assert (asked.wait.seconds, asked.include_artifact, asked.include_domains) == (30, False, False)
    assert server.times_left[0] > 30


def test_a_service_that_is_lost_does_not_say_when_code_is_compiled(server: FakeServer) -> None:
    server.stop()
    with attune.Client(server.address, deadline=5.0) as client:
        assert not told(client)


def test_nobody_says_of_a_gpu_that_the_service_does_not_know_when_code_is_compiled() -> None:
    said: list[bool] = []
    asking = Service(settings(FakeClient([known("cuda:0", model="NVIDIA T4")])), gpu_of)
    asking.when_compiled(PROBLEM, 0, said.append)
    assert said == [False]


def test_guesses_are_not_accepted_unless_asked_for(gpu: SimpleNamespace) -> None:
    asked = ask(FakeClient([known("cuda:0")]))
    assert Provenance.HEURISTIC not in asked[0].acceptable
    assert Provenance.NEAREST in asked[0].acceptable


def test_the_device_of_the_same_uuid_is_asked_about(gpu: SimpleNamespace) -> None:
    client = FakeClient([known("cuda:0", uuid="GPU-0000"), known("cuda:1", uuid="GPU-1234-abcd")])
    assert ask(client)[0].key.device_id == "cuda:1"


def test_without_it_the_first_of_the_same_model_is(gpu: SimpleNamespace) -> None:
    client = FakeClient([known("cuda:0", model="NVIDIA T4"), known("cuda:1"), known("cuda:2")])
    assert ask(client)[0].key.device_id == "cuda:1"


def test_a_service_without_such_a_device_has_no_answer(gpu: SimpleNamespace) -> None:
    client = FakeClient([known("opencl:0", backend=Backend.OPENCL), known("cuda:0", model="NVIDIA T4")])
    with pytest.raises(Unsuitable, match=r"cuda:0 is a NVIDIA L4; the service knows cuda:0 \(NVIDIA T4\)") as raised:
        ask(client)
    assert raised.value.reason is Reason.NO_ANSWER


def test_a_gpu_that_the_service_does_not_know_is_looked_for_ever_more_seldom(
    gpu: SimpleNamespace, clock: Clock
) -> None:
    client = FakeClient([])
    asking = Service(settings(client), gpu_of)
    for seconds, times in ((0, 1), (1, 1), (30, 2), (30, 2), (31, 3)):
        clock.now += seconds
        with pytest.raises(Unsuitable):
            asking.answer(PROBLEM, 0, kept=True)
        assert client.devices_asked == times
    client.devices_known = [known("cuda:3")]
    clock.now += 120
    asking.answer(PROBLEM, 0, kept=True)
    assert client.asked[0].key.device_id == "cuda:3"


def test_a_device_that_was_configured_is_believed(gpu: SimpleNamespace) -> None:
    assert ask(FakeClient([]), device="cuda:7")[0].key.device_id == "cuda:7"


def test_configure_names_what_is_no_client() -> None:
    with pytest.raises(InvalidArgument, match=r"^client is 'l4:7411'; it must be an attune.Client, or None$"):
        configure("l4:7411")  # type: ignore[arg-type]


def test_configure_names_a_provenance_that_does_not_exist() -> None:
    with pytest.raises(InvalidArgument, match="provenance is 'GUESS'; it must be one of EXACT"):
        configure(acceptable=["GUESS"])


@pytest.mark.parametrize(("name", "value"), [("wait", -1), ("hold", float("nan")), ("revalidate", 0.5)])
def test_configure_names_a_time_that_cannot_be(name: str, value: float) -> None:
    with pytest.raises(InvalidArgument, match=rf"{name} is {value}; it must be a number of seconds, at least [01]"):
        configure(**{name: value})


def test_an_unreachable_service_is_tried_ever_more_seldom(
    gpu: SimpleNamespace, clock: Clock, server: FakeServer
) -> None:
    client = attune.Client(server.address, deadline=5.0, retry=attune.RetryPolicy(attempts=1))
    asking = Service(settings(client, "cuda:0"), gpu_of)
    server.stop()
    waits = []
    for _ in range(8):
        with pytest.raises(Unreachable):
            asking.answer(PROBLEM, 0, kept=False)
        with pytest.raises(Unreachable):
            asking.served()
        waits.append(asking.unreachable_until - clock.now)
        clock.now = asking.unreachable_until
    wanted = [1, 2, 4, 8, 16, 30, 30, 30]
    assert all(0.75 * most <= wait <= most for wait, most in zip(waits, wanted, strict=True))
    asking.close()
    client.close()


def test_what_is_served_changes_with_an_incumbent(gpu: SimpleNamespace, server: FakeServer) -> None:
    with attune.Client(server.address) as client:
        asking = Service(settings(client, "cuda:0"), gpu_of)
        found = []
        for name in ("incumbents/1", "incumbents/1", "incumbents/2"):
            server.responses["ListIncumbents"] = message("ListIncumbentsResponse", incumbents=[{"name": name}])
            found.append(asking.served())
        asking.close()
    assert found[0] == found[1] != found[2]


@pytest.fixture
def snapshot(tmp_path: Any, server: FakeServer) -> Any:
    """A snapshot file of what the server serves: PROBLEM on cuda:1, an L4."""
    path = tmp_path / "served.snapshot"
    devices = [
        {"id": "cuda:0", "backend": 1, "model": "NVIDIA T4"},
        {"id": "cuda:1", "backend": 1, "model": "NVIDIA L4"},
    ]
    server.responses["ListDevices"] = message("ListDevicesResponse", devices=devices)
    incumbent = {"problem": PROBLEM.to_message(), "device_id": "cuda:1", "policy": 1}
    server.responses["ListIncumbents"] = message("ListIncumbentsResponse", incumbents=[incumbent])
    server.responses["GetBest"] = answer(device_id="cuda:1", artifact=b"cubin")
    with attune.Client(server.address) as client:
        client.export_snapshot(path)
    return path


def test_a_snapshot_answers_without_a_server_and_without_a_device_given(
    gpu: SimpleNamespace, server: FakeServer, snapshot: Any
) -> None:
    server.stop()
    with attune.Client(server.address, snapshot=snapshot, deadline=5.0) as client:
        asking = Service(settings(client), gpu_of)
        found = asking.answer(PROBLEM, 0, kept=True)
        assert (found.device_id, found.artifact) == ("cuda:1", b"cubin")
        assert "from the snapshot" in found.provenance_detail
        with pytest.raises(Unreachable):
            asking.answer(PROBLEM, 0, kept=False)
        asking.close()


def test_without_a_snapshot_the_error_is_unreachable(gpu: SimpleNamespace, server: FakeServer) -> None:
    server.stop()
    with attune.Client(server.address, deadline=5.0) as client:
        asking = Service(settings(client), gpu_of)
        with pytest.raises(Unreachable, match="no server reached"):
            asking.answer(PROBLEM, 0, kept=True)
        asking.close()


def test_closing_ends_a_question_that_nobody_answers(gpu: SimpleNamespace, server: FakeServer) -> None:
    import threading

    asked, released = threading.Event(), threading.Event()

    def hang(request: Any) -> Any:
        asked.set()
        released.wait(60)
        return answer()

    server.responses["GetBest"] = hang
    client = attune.Client(server.address, deadline=60.0)
    asking = Service(settings(client, "cuda:0"), gpu_of)
    ended: list[BaseException] = []

    def question() -> None:
        try:
            asking.answer(PROBLEM, 0, kept=True)
        except BaseException as error:
            ended.append(error)

    thread = threading.Thread(target=question)
    thread.start()
    assert asked.wait(60)
    asking.close()
    thread.join(30)
    alive = thread.is_alive()
    released.set()
    thread.join()
    client.close()
    assert not alive
    assert len(ended) == 1
