"""Snapshot files."""

from __future__ import annotations

import pytest
from fake import PROBLEM, answer, message, problem
from golden import golden
from google.protobuf.json_format import ParseDict

from attune import DataLoss, FailedPrecondition, NotFound, Policy, Problem, snapshot
from attune.cache import AnswerKey

EXPORTED = 1_795_000_000


def pair(**fields):
    request = message("GetBestRequest", problem=problem(), device_id="cuda:0", policy=1)
    return request, answer(provenance_detail="as tuned", **fields)


@pytest.fixture
def path(tmp_path):
    """A snapshot of one answer, longer than one byte's length can say."""
    path = tmp_path / "served.snapshot"
    devices = message("ListDevicesResponse", devices=[{"id": "cuda:0"}, {"id": "cuda:1"}])
    snapshot.Snapshot(EXPORTED, devices, [pair(artifact=b"x" * 70_000)]).write(path)
    return path


def key(device_id="cuda:0", policy=Policy.HOT):
    return AnswerKey(Problem.parse(PROBLEM), device_id, policy)


def test_reads_back_what_it_wrote(path):
    read = snapshot.load(path)
    assert read.exported == EXPORTED
    assert [device.id for device in read.devices.devices] == ["cuda:0", "cuda:1"]
    assert read.answers == (pair(artifact=b"x" * 70_000),)


def test_the_header_is_the_formats(path):
    assert path.read_bytes()[:24] == b"ATTNSNAP" + (1).to_bytes(4, "little") * 2 + EXPORTED.to_bytes(8, "little")


def test_keeps_the_provenance_and_says_where_the_answer_is_from(path):
    found = snapshot.load(path).find(key())
    assert found.provenance.name == "EXACT"
    assert found.provenance_detail == "as tuned; from the snapshot of 2026-11-18 11:06 UTC"


def test_no_device_means_the_first(path):
    assert snapshot.load(path).find(key(device_id="")) == snapshot.load(path).find(key())


def test_a_problem_in_a_range_has_the_answer_that_is_worked_out():
    request, known = pair()
    known.recipe.launches.add(entry="f").args.add(i32=512)
    numbers = {"field": 4, "step": {"slope": 1, "divide": 1}}
    known.domains.add(axis=3, low=512, high=1023).varying.add(**numbers)
    known.domains.add(axis=9, low=1, high=9)  # of a later version
    devices = message("ListDevicesResponse", devices=[{"id": "cuda:0", "uuid": "GPU-0"}])
    served = snapshot.Snapshot(EXPORTED, devices, [(request, known)])
    other = Problem.parse("b2.h8.q700.d64.f16")
    for name in ("cuda:0", "GPU-0", ""):
        found = served.find(AnswerKey(other, name, Policy.HOT))
        assert (found.problem, found.recipe.launches[0].args[0].value) == (other, 700)
        assert found.provenance_detail == f"from {PROBLEM}; from the snapshot of 2026-11-18 11:06 UTC"
    for text in ("b2.h8.q1024.d64.f16", "b2.h8.q700.kv701.d64.f16", "b3.h8.q700.d64.f16"):
        assert served.find(AnswerKey(Problem.parse(text), "cuda:0", Policy.HOT)) is None
    assert served.find(AnswerKey(other, "cuda:0", Policy.COLD)) is None


GOLDEN = golden("snapshot_ranges")


@pytest.fixture(scope="module")
def golden_snapshot(tmp_path_factory):
    devices = message("ListDevicesResponse")
    ParseDict({"devices": GOLDEN["devices"]}, devices)
    answers = []
    for known in GOLDEN["answers"]:
        asked = Problem.parse(known["problem"]).to_message()
        request = message(
            "GetBestRequest", problem=asked, device_id=known["device"], policy=Policy.of(known["policy"]).value
        )
        response = ParseDict(known["response"], message("GetBestResponse", problem=asked, artifact=b"code"))
        answers.append((request, response))
    path = tmp_path_factory.mktemp("golden") / "snapshot"
    snapshot.Snapshot(GOLDEN["exported"], devices, answers).write(path)
    return snapshot.load(path)


@pytest.mark.parametrize("vector", GOLDEN["vectors"], ids=lambda vector: vector["name"])
def test_problems_in_ranges_have_the_answers_that_cpp_gives(golden_snapshot, vector):
    asked = Problem.parse(vector["problem"])
    found = golden_snapshot.find(AnswerKey(asked, vector["device"], Policy.of(vector["policy"])))
    assert (found is not None) == ("provenance" in vector)
    if found is None:
        return
    source = GOLDEN["source"]
    assert found.provenance.name == vector["provenance"]
    assert found.provenance_detail == (f"{vector['detail']}; {source}" if vector["detail"] else source)
    assert found.variant.text == vector["variant"]
    assert found.recipe.launches[0].args[0].value == vector["argument"]
    assert (found.problem, found.artifact) == (asked, b"code")
    own = vector["provenance"] not in ("NEAREST", "HEURISTIC")
    assert (found.domains != ()) == own
    if not own:
        assert (found.geometry, found.pinned, found.ties) == (None, False, ())


def test_a_device_goes_by_its_uuid_and_its_class_too():
    devices = message(
        "ListDevicesResponse", devices=[{"id": "cuda:1"}, {"id": "cuda:0", "uuid": "GPU-0", "class_alias": "l4"}]
    )
    served = snapshot.Snapshot(EXPORTED, devices, [pair()])
    for name in ("GPU-0", "l4"):
        assert served.find(key(device_id=name)) == served.find(key())
    assert served.find(key(device_id="h200")) is None


def test_has_no_answer_for_what_was_not_exported(path):
    read = snapshot.load(path)
    assert read.find(key(device_id="cuda:1")) is None
    assert read.find(key(policy=Policy.COLD)) is None


def test_a_shape_that_only_a_later_version_knows_is_passed_over(tmp_path):
    request, response = pair()
    request.problem.dtype = 9
    snapshot.Snapshot(EXPORTED, message("ListDevicesResponse"), [(request, response), pair()]).write(tmp_path / "later")
    assert snapshot.load(tmp_path / "later").find(key()) is not None


@pytest.mark.parametrize("at", [0, 7, 12, 16, 24, 55, 56, 60, 1000, -1])
def test_a_flipped_byte_is_noticed(path, at):
    data = bytearray(path.read_bytes())
    data[at] ^= 0x40
    path.write_bytes(data)
    with pytest.raises(DataLoss, match="is damaged"):
        snapshot.load(path)


@pytest.mark.parametrize("length", [0, 7, 55, 56, 100])
def test_a_truncated_file_is_damaged(path, length):
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(DataLoss, match="is damaged"):
        snapshot.load(path)


def test_another_version_is_named(path):
    data = bytearray(path.read_bytes())
    data[8] = 2
    path.write_bytes(data)
    with pytest.raises(FailedPrecondition, match="has format version 2; this program reads version 1"):
        snapshot.load(path)


def test_a_missing_file_is_not_found(tmp_path):
    with pytest.raises(NotFound, match="there is no snapshot"):
        snapshot.load(tmp_path / "none")


def test_writing_where_it_cannot_leaves_nothing_behind(path):
    (path.parent / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        snapshot.load(path).write(path.parent / "folder")
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["folder", "served.snapshot"]
