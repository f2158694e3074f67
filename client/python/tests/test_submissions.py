"""Kernels of one's own, as the client sends and reads them."""

import pytest
from fake import message, trial

import attune
from attune import values

PROBLEM = "b2.h8.q512.d64.f16"


def row(**fields):
    return {"problem": PROBLEM, "decision": 1, "reason": "1.250 times as fast", "speedup": 1.25, **fields}


def submission(name="submissions/7", **fields):
    result = {"decision": 1, "submission": name, "rows": [row(trial=trial())]}
    return message("Submission", name=name, loop="tiles", iteration=2, state=1, result=result, **fields)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "tiles").mkdir()
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/config").write_text("x")
    (tmp_path / "family.textproto").write_text("m")
    (tmp_path / "tiles/tile.h").write_bytes(b"\xff")
    return tmp_path


def test_a_folder_is_sent_with_its_files_and_what_was_said(connect, server, folder):
    server.responses["Submit"] = message("Operation", name="operations/1")
    connect(server).submit(
        folder,
        [PROBLEM, "b1.h1.q128.d64.f16"],
        hypothesis="larger tiles",
        base="previous",
        loop="tiles",
        sanitize_every=0,
    )
    (request,) = server.asked("Submit")
    assert {file.path: file.text for file in request.files} == {"family.textproto": b"m", "tiles/tile.h": b"\xff"}
    assert (request.hypothesis, request.base, request.loop) == ("larger tiles", "previous", "tiles")
    assert request.HasField("sanitize_every") and request.sanitize_every == 0
    assert [one.seq_q for one in request.problems] == [512, 128]
    assert request.request_id


def test_one_file_or_texts_are_sent_as_they_are(connect, server, folder):
    server.responses["Submit"] = message("Operation", name="operations/1")
    client = connect(server)
    client.submit(folder / "tiles/tile.h", PROBLEM)
    client.submit({"mine.cl": "/* attune */"}, PROBLEM)
    first, second = server.asked("Submit")
    assert not first.HasField("sanitize_every")
    assert [file.path for file in first.files] == ["tile.h"]
    assert [(file.path, file.text) for file in second.files] == [("mine.cl", b"/* attune */")]
    assert first.base == "incumbent"
    with pytest.raises(attune.InvalidArgument, match="neither a file nor a folder"):
        client.submit(folder / "none", PROBLEM)


def test_an_operation_ends_with_the_verdict(connect, server):
    diagnostic = {"path": "mine.cl", "line": 12, "text": "undeclared"}
    gate = {"gate": 5, "failed": True, "text": "5 % slower"}
    result = {"decision": 2, "reason": "slower", "rows": [row(diagnostics=[diagnostic], gates=[gate])]}
    server.responses["GetOperation"] = message("Operation", name="operations/1", state=3, done=True, submit=result)
    ended = connect(server).operation("operations/1").result()
    assert ended.decision is values.SubmitDecision.REVERT
    assert (ended.rows[0].diagnostics[0].line, ended.rows[0].speedup) == (12, 1.25)
    assert ended.rows[0].gates[0].gate is values.Gate.REGRESSION


def test_submissions_are_listed_fetched_adopted_and_withdrawn(connect, server):
    client = connect(server)
    server.responses["ListSubmissions"] = message("ListSubmissionsResponse", submissions=[submission()])
    (listed,) = client.submissions(loop="tiles")
    assert (listed.name, listed.iteration, listed.state) == ("submissions/7", 2, values.SubmissionState.PRIVATE)
    assert server.asked("ListSubmissions")[0].loop == "tiles"
    server.responses["GetSubmission"] = submission(files=[{"path": "mine.cl", "text": b"int a;"}])
    assert client.submission(7).files[0].text == b"int a;"
    server.responses["AdoptSubmission"] = submission()
    server.responses["WithdrawSubmission"] = submission()
    client.adopt(7)
    client.withdraw("submissions/7")
    assert server.asked("AdoptSubmission")[0].name == server.asked("WithdrawSubmission")[0].name == "submissions/7"


def test_a_submission_is_explained(connect, server):
    server.responses["Explain"] = message(
        "ExplainResponse", trial=trial(), findings=[{"bound": 7, "text": "it is wrong"}]
    )
    client = connect(server)
    assert client.explain("submissions/7").trial.name == "trials/1"
    client.explain(values.Submission.from_message(submission()), problem=PROBLEM)
    named, with_problem = server.asked("Explain")
    assert (named.submission, named.HasField("submission_problem")) == ("submissions/7", False)
    assert (with_problem.submission, with_problem.submission_problem.seq_kv) == ("submissions/7", 512)
    with pytest.raises(attune.InvalidArgument, match="problem is given with trials/1; it is allowed with a submission"):
        client.explain("trials/1", problem=PROBLEM)
