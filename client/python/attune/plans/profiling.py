"""A trial's code under NVIDIA's tools, on the server's host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attune.errors import InvalidArgument
from attune.plans.plan import Plan, call, resource
from attune.plans.work import new_request_id
from attune.problem import Problem
from attune.values import Operation, Policy, SanitizerTool, Trial, Variant


def profile(
    subject: Trial | Problem | str | int,
    variant: Variant | str = "",
    *,
    problem: Problem | str | None = None,
    device: str = "",
    policy: Policy | str = Policy.HOT,
    request_id: str | None = None,
) -> Plan[Operation]:
    """Runs a trial's code under Nsight Compute; its counters are kept with the trial.

    `subject`: a trial (itself, its name or number); a problem, whose best variant it is, or the `variant` that was
    tried; or a submission, "submissions/7", of several problems with `problem`. InvalidArgument for a `variant` of
    anything but a problem, and a `problem` of anything but a submission.
    """
    code = _code(subject, variant, problem, policy)
    response = yield from call("Profile", request_id=request_id or new_request_id(), code=code, device_id=device)
    return Operation.from_message(response)


def sanitize(
    subject: Trial | Problem | str | int,
    variant: Variant | str = "",
    *,
    tools: Sequence[SanitizerTool | str] = (),
    problem: Problem | str | None = None,
    device: str = "",
    policy: Policy | str = Policy.HOT,
    request_id: str | None = None,
) -> Plan[Operation]:
    """Runs a trial's code under compute-sanitizer; what is found is kept with the trial.

    `subject`, `variant` and `problem` as for profile. `tools`: memcheck, racecheck, synccheck, initcheck; by default
    all.
    """
    response = yield from call(
        "Sanitize",
        request_id=request_id or new_request_id(),
        code=_code(subject, variant, problem, policy),
        device_id=device,
        tools=[SanitizerTool.of(tool).value for tool in tools],
    )
    return Operation.from_message(response)


def _code(
    subject: Trial | Problem | str | int, variant: Variant | str, problem: Problem | str | None, policy: Policy | str
) -> dict[str, Any]:
    if isinstance(subject, Trial):
        subject = subject.name
    is_trial = isinstance(subject, int) or (
        isinstance(subject, str) and (subject.isdigit() or subject.startswith("trials/"))
    )
    is_submission = isinstance(subject, str) and subject.startswith("submissions/")
    if variant and (is_trial or is_submission):
        raise InvalidArgument(f"variant is given with {subject}; it is allowed with a problem alone")
    if problem is not None and not is_submission:
        raise InvalidArgument(f"problem is given with {subject}; it is allowed with a submission alone")
    if is_trial:
        return {"trial": resource("trials", subject)}
    code: dict[str, Any] = {"policy": Policy.of(policy).value}
    if is_submission:
        code["submission"] = subject
        if problem is not None:
            code["problem"] = Problem.of(problem).to_message()
    else:
        code["problem"] = Problem.of(subject).to_message()
    if variant:
        code["variant"] = {"text": str(variant)}
    return code
