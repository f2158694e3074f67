"""Work that a server does: tunings, sweeps, evaluations."""

from __future__ import annotations

import os
import pathlib
import secrets
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from google.protobuf import text_format
from google.protobuf.message import Message

from attune import api, arguments
from attune.errors import InvalidArgument
from attune.plans.plan import Plan, call, pages, resource
from attune.problem import Problem
from attune.table import Table
from attune.values import Effort, Objective, Operation, Policy, Strategy, SweepPlan, Variant


def tune(
    problem: Problem | str,
    *,
    device: str = "",
    policy: Policy | str = Policy.HOT,
    families: Sequence[str] = (),
    strategy: Strategy | str | None = None,
    max_trials: int | None = None,
    max_time: float | timedelta | None = None,
    seed: int = 0,
    retry_known: bool = False,
    background: bool = False,
    request_id: str | None = None,
    ignore_advice: bool = False,
    where: Sequence[str] = (),
    require: Sequence[Variant | str] = (),
    seed_from: Sequence[Problem | str] = (),
    effort: Effort | str | None = None,
    check_all: bool = False,
    energy: bool = False,
    cards: int = 1,
    objective: Objective | str = Objective.TIME,
) -> Plan[Operation]:
    """Starts tuning a problem, or joins the same tuning when it already runs.

    `families`: only these; none means all that fit. `max_trials` and `max_time`, in seconds, end the search; None is no
    limit. `strategy` None is Strategy.GUIDED, which tries a small part of the space, but Strategy.EXHAUSTIVE where
    `effort` is Effort.EXHAUSTIVE. `effort` is of GUIDED and EVOLUTION; None is Effort.STANDARD. `seed` is of all
    strategies but EXHAUSTIVE, 0 lets the server choose. `retry_known` tries again what has a trial under today's
    dependencies; `check_all` checks all of what is slow, too, so that none is SLOW. `energy` measures also what a run
    of each contestant of the play-off takes in joules, about a second for each, with HOT and L2_WARM alone; what is
    served is still the fastest. `objective` ENERGY (joules a run) or EDP (those times its seconds) does so with eight
    of the fastest variants, and keeps what is best by either for `best` with that objective. `cards`: how many
    cards of one class share the trials, of the class that `device` names, or that of the server's first device.
    `background` gives way to every other job. `ignore_advice` tries also what the families advise against. `where`:
    only variants of which each of these is true, expressions over a family's parameters ("BLOCK_M == 64"); `require`:
    variants that are tried in any case, before what is guessed or drawn; `seed_from`: problems whose best variants are
    tried next. The same `request_id` (at most 128 characters) starts the same tuning once.
    """
    chosen: dict[str, Any] = {"seed": seed}
    if effort is not None:
        chosen["effort"] = Effort.of(effort).value
    if strategy is None:
        everything = effort is not None and Effort.of(effort) is Effort.EXHAUSTIVE
        strategy = Strategy.EXHAUSTIVE if everything else Strategy.GUIDED
    chosen["kind"] = Strategy.of(strategy).value
    if max_trials is not None:
        chosen["max_trials"] = arguments.count("max_trials", max_trials, unset="None (no limit)")
    if max_time is not None:
        chosen["max_time"] = api.duration(arguments.seconds("max_time", max_time, above=0, unset="None (no limit)"))
    response = yield from call(
        "Tune",
        request_id=request_id or new_request_id(),
        problem=Problem.of(problem).to_message(),
        device_id=device,
        policy=Policy.of(policy).value,
        families=arguments.several("families", families, "'attention_mma'"),
        strategy=chosen,
        retry_known=retry_known,
        check_all=check_all,
        energy=energy,
        cards=arguments.count("cards", cards),
        objective=Objective.of(objective).value,
        background=background,
        ignore_advice=ignore_advice,
        where=arguments.several("where", where, "'BLOCK_M == 64'"),
        required=[{"text": str(variant)} for variant in arguments.several("require", require, "'FAMILY:NAME=VALUE'")],
        seed_from=[str(Problem.of(one)) for one in arguments.several("seed_from", seed_from, "'b1.h8.q1024.d128.f16'")],
    )
    return Operation.from_message(response)


def evaluate(
    problem: Problem | str,
    variant: Variant | str,
    *,
    device: str = "",
    policy: Policy | str = Policy.HOT,
    pin: bool = False,
    why: str = "",
    request_id: str | None = None,
) -> Plan[Operation]:
    """Compiles, checks and times one variant ("attention_simt:BLOCK_M=64,...") against the incumbent.

    With `pin` the variant is served if it is right, also when it is slower, and no faster one replaces it until
    `unpin`; `why` is kept in the history.
    """
    response = yield from call(
        "EvaluateVariant",
        request_id=request_id or new_request_id(),
        problem=Problem.of(problem).to_message(),
        device_id=device,
        policy=Policy.of(policy).value,
        variant={"text": str(variant)},
        pin=pin,
        why=why,
    )
    return Operation.from_message(response)


def sweep(plan: Message | str | os.PathLike[str], *, request_id: str | None = None) -> Plan[Operation]:
    """Starts a sweep over many problems.

    `plan` is an attune.v1.SweepPlan: its protobuf text, the path (a pathlib.Path) of a file of it, or the message,
    made by attune.api.message("SweepPlan").
    """
    response = yield from call("Sweep", request_id=request_id or new_request_id(), plan=sweep_plan(plan))
    return Operation.from_message(response)


def plan_sweep(plan: Message | str | os.PathLike[str]) -> Plan[SweepPlan]:
    """What `sweep` would do with the plan, and about how long it would take; starts nothing.

    `plan` is as in `sweep`: a str is the plan's text, a file is given by its pathlib.Path.
    """
    return SweepPlan.from_message((yield from call("PlanSweep", plan=sweep_plan(plan))))


def operation(name: str) -> Plan[Operation]:
    """The operation "operations/...", as it stands."""
    return Operation.from_message((yield from call("GetOperation", name=resource("operations", name))))


def operations(
    problem: Problem | str | None = None, *, active_only: bool = False, sweep: str = "", limit: int | None = None
) -> Plan[Table[Operation]]:
    """The server's operations, newest first; with `problem` those that tune or evaluate it.

    With `sweep`, a sweep's name, those of its problems; they are among no others.
    """
    fields = {
        "problem": "" if problem is None else str(Problem.of(problem)),
        "active_only": active_only,
        "parent": resource("operations", sweep) if sweep else "",
    }
    return (yield from pages("ListOperations", "operations", Operation.from_message, limit, **fields))


def cancel(name: str) -> Plan[Operation]:
    """Stops an operation at once, its trial unfinished; what was committed stays. A finished one does not change."""
    return Operation.from_message((yield from call("CancelOperation", name=resource("operations", name))))


def new_request_id() -> str:
    """128 random bits: no two requests that anybody makes share one."""
    return secrets.token_hex(16)


def sweep_plan(plan: Message | str | os.PathLike[str]) -> Message:
    """`plan` as a message; InvalidArgument says where its text is wrong."""
    if isinstance(plan, Message):
        return plan
    if isinstance(plan, str):
        name, text = "plan", plan
    else:
        name, text = os.fspath(plan), pathlib.Path(plan).read_text()
    try:
        return text_format.Parse(text, api.message("SweepPlan")())
    except text_format.ParseError as error:
        raise InvalidArgument(f"{name}:{error}") from None
