"""Profiles and sanitizer runs, as the client asks for them and reads them."""

import pytest
from fake import message, trial

import attune
from attune import values

PROBLEM = "b2.h8.q512.d64.f16"
PROFILE = {
    "kernels": [
        {
            "entry": "attention",
            "counters": [{"name": "dram_throughput", "value": 0.912}],
            "stalls": [{"reason": "barrier", "share": 0.25}],
        }
    ],
    "operation": "operations/1",
}


def test_a_subject_is_a_trial_a_problem_with_a_variant_or_a_submission(connect, server):
    server.responses["Profile"] = message("Operation", name="operations/1")
    client = connect(server)
    client.profile(12)
    client.profile(values.Trial.from_message(trial("trials/3")))
    client.profile(PROBLEM, "tiles:BLOCK=64", device="cuda:1", policy="cold")
    client.profile("submissions/7", problem=PROBLEM)
    client.profile("submissions/7")
    numbered, own, variant, submission, only = server.asked("Profile")
    assert (numbered.code.trial, own.code.trial) == ("trials/12", "trials/3")
    assert (variant.code.problem.seq_q, variant.code.variant.text) == (512, "tiles:BLOCK=64")
    assert (variant.device_id, variant.code.policy) == ("cuda:1", 2)
    assert (submission.code.submission, submission.code.problem.seq_q) == ("submissions/7", 512)
    assert not only.code.HasField("problem")
    assert numbered.request_id


@pytest.mark.parametrize(
    ("subject", "given", "error"),
    [
        (12, {"variant": "tiles:BLOCK=64"}, "variant is given with 12; it is allowed with a problem alone"),
        ("trials/3", {"problem": PROBLEM}, "problem is given with trials/3; it is allowed with a submission alone"),
        ("submissions/7", {"variant": "tiles:BLOCK=64"}, "variant is given with submissions/7"),
        (PROBLEM, {"problem": PROBLEM}, f"problem is given with {PROBLEM}; it is allowed with a submission alone"),
    ],
)
def test_what_contradicts_itself_is_not_sent(connect, server, subject, given, error):
    client = connect(server)
    for call in (client.profile, client.sanitize):
        with pytest.raises(attune.InvalidArgument, match=error):
            call(subject, **given)
    assert server.requests == []


def test_a_profile_ends_with_its_counters_by_name(connect, server):
    result = {"trial": trial(profile=PROFILE), "bound": "DRAM, at 91 % of its peak"}
    server.responses["GetOperation"] = message("Operation", name="operations/1", state=3, done=True, profile=result)
    ended = connect(server).operation("operations/1").result()
    assert ended.bound == "DRAM, at 91 % of its peak"
    (kernel,) = ended.trial.profile.kernels
    assert (kernel.counters, kernel.stalls) == ({"dram_throughput": 0.912}, {"barrier": 0.25})


def test_sanitizers_are_named_and_their_findings_come_back(connect, server):
    server.responses["Sanitize"] = message("Operation", name="operations/1")
    client = connect(server)
    client.sanitize(PROBLEM, tools=["memcheck", values.SanitizerTool.RACECHECK])
    (request,) = server.asked("Sanitize")
    assert list(request.tools) == [1, 2]
    with pytest.raises(attune.InvalidArgument, match="MEMCHECK, RACECHECK, SYNCCHECK, INITCHECK"):
        client.sanitize(PROBLEM, tools=["leaks"])
    runs = [{"tool": 1, "errors": 2, "findings": ["Invalid read"]}]
    result = {"trial": trial(sanitizing={"runs": runs}), "reason": "memcheck reports 2 errors"}
    server.responses["GetOperation"] = message("Operation", name="operations/1", state=3, done=True, sanitize=result)
    ended = client.operation("operations/1").result()
    assert not ended.clean
    (run,) = ended.trial.sanitizing.runs
    assert (run.tool, run.errors, run.findings) == (values.SanitizerTool.MEMCHECK, 2, ("Invalid read",))
