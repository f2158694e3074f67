"""Kernels of one's own: tried, listed, adopted, withdrawn."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Mapping, Sequence

from attune.errors import InvalidArgument
from attune.plans.plan import Plan, call, pages, resource
from attune.plans.work import new_request_id
from attune.problem import Problem
from attune.table import Table
from attune.values import Operation, Policy, Submission


def submit(
    kernel: str | os.PathLike[str] | Mapping[str, str | bytes],
    problems: Problem | str | Sequence[Problem | str],
    *,
    device: str = "",
    policy: Policy | str = Policy.HOT,
    hypothesis: str = "",
    base: str = "incumbent",
    loop: str = "",
    sanitize_every: int | None = None,
    request_id: str | None = None,
) -> Plan[Operation]:
    """Compiles, checks and times a kernel of one's own against a base: KEEP or REVERT. What is served stays.

    `kernel`: the path of a folder with family.textproto and its sources, or of one .cl or .cu file with its manifest in
    the comment at its head; or the files by their paths. `base`: "incumbent", "previous" (the last of the loop that was
    kept) or a submission, "submissions/7". `hypothesis`, and `loop`, the name of the loop that it is an iteration of,
    are kept with it. `sanitize_every`: every so many iterations of the loop, what would be kept runs under
    compute-sanitizer, whose findings revert it; None: the server's default (5), 0: never.
    """
    asked = [problems] if isinstance(problems, (Problem, str)) else problems
    files = kernel if isinstance(kernel, Mapping) else _read(pathlib.Path(kernel))
    response = yield from call(
        "Submit",
        request_id=request_id or new_request_id(),
        files=[
            {"path": path, "text": text.encode() if isinstance(text, str) else text} for path, text in files.items()
        ],
        problems=[Problem.of(problem).to_message() for problem in asked],
        device_id=device,
        policy=Policy.of(policy).value,
        hypothesis=hypothesis,
        base=base,
        loop=loop,
        **({} if sanitize_every is None else {"sanitize_every": sanitize_every}),
    )
    return Operation.from_message(response)


def submission(name: str) -> Plan[Submission]:
    """The submission "submissions/...", with its files."""
    return Submission.from_message((yield from call("GetSubmission", name=resource("submissions", name))))


def submissions(*, loop: str = "", principal: str = "", limit: int | None = None) -> Plan[Table[Submission]]:
    """What was submitted, newest first, without files: one's own and what is adopted.

    With `loop`, of this loop alone, one's own unless `principal` names whose.
    """
    fields = {"loop": loop, "principal": principal}
    return (yield from pages("ListSubmissions", "submissions", Submission.from_message, limit, **fields))


def adopt(name: str) -> Plan[Submission]:
    """Makes a submission that was kept one of the kernel families; for admins."""
    return Submission.from_message((yield from call("AdoptSubmission", name=resource("submissions", name))))


def withdraw(name: str) -> Plan[Submission]:
    """Withdraws a submission. One that is adopted is a family no more, and must not be served."""
    return Submission.from_message((yield from call("WithdrawSubmission", name=resource("submissions", name))))


def _read(path: pathlib.Path) -> dict[str, bytes]:
    if path.is_file():
        return {path.name: path.read_bytes()}
    if not path.is_dir():
        raise InvalidArgument(f"kernel is {str(path)!r}, which is neither a file nor a folder")
    found = sorted(file for file in path.rglob("*") if file.is_file())
    own = [file for file in found if not any(part.startswith(".") for part in file.relative_to(path).parts)]
    return {file.relative_to(path).as_posix(): file.read_bytes() for file in own}
