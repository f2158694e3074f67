"""What a server knows of problems: trials, incumbents, baselines."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from attune import arguments
from attune.errors import InvalidArgument
from attune.plans.plan import Plan, call, pages, resource
from attune.problem import Problem
from attune.table import Table
from attune.values import (
    Baseline,
    ComparedTimes,
    Explanation,
    Incumbent,
    Miss,
    Objective,
    Policy,
    Retiming,
    RetriedTrials,
    Submission,
    Trend,
    TrendState,
    Trial,
    Verdict,
)

_ORDERS = {"newest": 1, "fastest": 2}


def _text(problem: Problem | str | None) -> str:
    return "" if problem is None else str(Problem.of(problem))


def _verdicts(given: Iterable[Verdict | str]) -> list[int]:
    return [Verdict.of(verdict).value for verdict in arguments.several("verdicts", given, "'OK'")]


def trials(
    problem: Problem | str | None = None,
    *,
    device: str = "",
    family: str = "",
    verdicts: Iterable[Verdict | str] = (),
    policy: Policy | str | None = None,
    job: str = "",
    order: str = "newest",
    limit: int | None = None,
) -> Plan[Table[Trial]]:
    """The trials that fit every filter given, without recipes, "newest" or "fastest" first; `limit` of them or all."""
    if order not in _ORDERS:
        raise InvalidArgument(f"order is {order!r}; it must be one of {', '.join(_ORDERS)}")
    filters = {
        "problem": _text(problem),
        "device_id": device,
        "family": family,
        "verdicts": _verdicts(verdicts),
        "policy": 0 if policy is None else Policy.of(policy).value,
        "job": resource("operations", job) if job else "",
    }
    return (yield from pages("ListTrials", "trials", Trial.from_message, limit, filter=filters, order=_ORDERS[order]))


def trial(name: str | int) -> Plan[Trial]:
    """The trial "trials/12" (or "12"), with its recipe."""
    return Trial.from_message((yield from call("GetTrial", name=resource("trials", name))))


def explain(
    subject: Trial | Submission | Problem | str | int,
    *,
    problem: Problem | str | None = None,
    device: str = "",
    policy: Policy | str = Policy.HOT,
    objective: Objective | str = Objective.TIME,
) -> Plan[Explanation]:
    """What bounds a trial (itself, its name or number), the best variant of a problem on `device` under `policy` by
    `objective`, or a submission (itself or its name), of which `problem` says which of its problems where it has
    several."""
    if isinstance(subject, (Trial, Submission)):
        subject = subject.name
    submission = isinstance(subject, str) and subject.startswith("submissions/")
    if problem is not None and not submission:
        raise InvalidArgument(f"problem is given with {subject}; it is allowed with a submission alone")
    if isinstance(subject, int) or (isinstance(subject, str) and (subject.isdigit() or subject.startswith("trials/"))):
        response = yield from call("Explain", trial=resource("trials", subject))
    elif submission:
        which = None if problem is None else Problem.of(problem).to_message()
        response = yield from call("Explain", submission=subject, submission_problem=which)
    else:
        best = {
            "problem": Problem.of(subject).to_message(),
            "device_id": device,
            "policy": Policy.of(policy).value,
            "objective": Objective.of(objective).value,
        }
        response = yield from call("Explain", best=best)
    return Explanation.from_message(response)


def incumbents(
    problem: Problem | str | None = None, *, device: str = "", history: bool = False, limit: int | None = None
) -> Plan[Table[Incumbent]]:
    """What is served, newest first; with `history` also what no longer is."""
    fields = {"problem": _text(problem), "device_id": device, "history": history}
    return (yield from pages("ListIncumbents", "incumbents", Incumbent.from_message, limit, **fields))


def retry_trials(
    verdicts: Iterable[Verdict | str],
    problem: Problem | str | None = None,
    *,
    device: str = "",
    family: str = "",
    policy: Policy | str | None = None,
    job: str = "",
) -> Plan[RetriedTrials]:
    """Has the trials that fit every filter given tried again by the next tune or sweep of their problems.

    `verdicts`: at least one, none of OK and LOST.
    """
    filters = {
        "problem": _text(problem),
        "device_id": device,
        "family": family,
        "verdicts": _verdicts(verdicts),
        "policy": 0 if policy is None else Policy.of(policy).value,
        "job": resource("operations", job) if job else "",
    }
    return RetriedTrials.from_message((yield from call("RetryTrials", filter=filters)))


def roll_back(
    problem: Problem | str,
    *,
    device: str = "",
    policy: Policy | str = Policy.HOT,
    why: str = "",
    to: Incumbent | str | int = "",
) -> Plan[Incumbent]:
    """Makes the previous incumbent of a problem the served one again and returns it; never tried twice.

    `to` names an earlier one ("incumbents/45", or its number); those in between are rolled back too.
    """
    name = to.name if isinstance(to, Incumbent) else to
    response = yield from call(
        "RollBack",
        retries=False,
        outdates_answers=True,
        problem=Problem.of(problem).to_message(),
        device_id=device,
        policy=Policy.of(policy).value,
        why=why,
        to=resource("incumbents", name) if name else "",
    )
    return Incumbent.from_message(response)


def unpin(problem: Problem | str, *, device: str = "", policy: Policy | str = Policy.HOT) -> Plan[Incumbent]:
    """Lets a faster variant replace the pinned incumbent of a problem again; returns the incumbent."""
    response = yield from call(
        "Unpin",
        outdates_answers=True,
        problem=Problem.of(problem).to_message(),
        device_id=device,
        policy=Policy.of(policy).value,
    )
    return Incumbent.from_message(response)


def record_baseline(
    problem: Problem | str,
    contender: str,
    median_us: float,
    low_us: float = 0.0,
    high_us: float = 0.0,
    *,
    device: str = "",
    policy: Policy | str = Policy.HOT,
    note: str = "",
) -> Plan[Baseline]:
    """Stores `contender`'s time for a problem, in microseconds (median and its interval); never tried twice."""
    baseline = {
        "problem": Problem.of(problem).to_message(),
        "device_id": device,
        "policy": Policy.of(policy).value,
        "contender": contender,
        "median_us": median_us,
        "low_us": low_us,
        "high_us": high_us,
        "note": note,
    }
    return Baseline.from_message((yield from call("RecordBaseline", retries=False, baseline=baseline)))


def baselines(
    problem: Problem | str | None = None, *, device: str = "", limit: int | None = None
) -> Plan[Table[Baseline]]:
    """Others' times, newest first."""
    fields = {"problem": _text(problem), "device_id": device}
    return (yield from pages("ListBaselines", "baselines", Baseline.from_message, limit, **fields))


def retimings(
    problem: Problem | str | None = None,
    *,
    device: str = "",
    policy: Policy | str | None = None,
    start: datetime | None = None,
    end: datetime | None = None,
    spans: int = 0,
    limit: int | None = None,
) -> Plan[Table[Retiming]]:
    """How long incumbents took whenever they were timed again, from `start` on and before `end`, newest first.

    With `spans`, which needs a problem, one time of each card, policy and variant in so many equal spans of time.
    """
    fields: dict[str, object] = {"problem": _text(problem), "device_id": device, "spans": spans}
    if policy is not None:
        fields["policy"] = Policy.of(policy).value
    fields |= _moments(start_time=start, end_time=end)
    return (yield from pages("ListRetimings", "retimings", Retiming.from_message, limit, **fields))


def trends(
    problem: Problem | str | None = None,
    *,
    device: str = "",
    policy: Policy | str | None = None,
    states: Iterable[TrendState | str] = (),
    start: datetime | None = None,
    end: datetime | None = None,
    points: int = 0,
    regression: float = 0.0,
    limit: int | None = None,
) -> Plan[Table[Trend]]:
    """What is served and has become slower, or faster, than it was served with: since when, and what changed then.

    `states` keeps those in one of them, `points` adds a curve of at most so many points to each; `regression` is the
    share beyond which a change counts, 0.02 unless given.
    """
    fields: dict[str, object] = {"problem": _text(problem), "device_id": device, "points": points}
    fields["regression"] = regression
    fields["states"] = [TrendState.of(state).value for state in arguments.several("states", states, "'SLOWER'")]
    if policy is not None:
        fields["policy"] = Policy.of(policy).value
    fields |= _moments(start_time=start, end_time=end)
    return (yield from pages("ListTrends", "trends", Trend.from_message, limit, **fields))


def compare(
    before: datetime | str | dict[str, object],
    to: datetime | str | dict[str, object] | None = None,
    *,
    problem: Problem | str | None = None,
    policy: Policy | str = Policy.HOT,
    regression: float = 0.0,
) -> Plan[ComparedTimes]:
    """Times of two dates, devices, toolchains, drivers or kernel families, problem by problem; where they differ first.

    Each side is a date, the name of a device or a class, or a dict of `end`, `device`, `toolchain`, `driver`, `family`.
    Without `to`: what is served now.
    """
    fields: dict[str, object] = {"problem": _text(problem), "policy": Policy.of(policy).value, "regression": regression}
    fields["from"] = _selection("before", before)
    fields["to"] = _selection("to", {} if to is None else to)
    return ComparedTimes.from_message((yield from call("CompareTimes", **fields)))


_SELECTED = {"device": "device_id", "toolchain": "toolchain", "driver": "driver", "family": "family"}


def _selection(name: str, side: datetime | str | dict[str, object]) -> dict[str, object]:
    if isinstance(side, datetime):
        side = {"end": side}
    elif isinstance(side, str):
        side = {"device": side}
    unknown = set(side) - set(_SELECTED) - {"end"}
    if unknown:
        raise InvalidArgument(f"{name} has {sorted(unknown)[0]!r}; it must be one of end, {', '.join(_SELECTED)}")
    fields: dict[str, object] = {_SELECTED[key]: value for key, value in side.items() if key != "end"}
    end = side.get("end")
    if end is not None and not isinstance(end, datetime):
        raise InvalidArgument(f"{name}['end'] is {end!r}; it must be a datetime")
    return fields | _moments(end_time=end)


def _moments(**moments: datetime | None) -> dict[str, object]:
    """Those that are given, as the API's timestamps."""
    fields: dict[str, object] = {}
    for name, moment in moments.items():
        if moment is not None:
            microseconds = round(moment.timestamp() * 1e6)
            fields[name] = {"seconds": microseconds // 1_000_000, "nanos": microseconds % 1_000_000 * 1000}
    return fields


def misses(*, device: str = "", limit: int | None = None) -> Plan[Table[Miss]]:
    """What the server was asked for and nobody has tuned, most often asked for first; `limit` of them or all."""
    return (yield from pages("ListMisses", "misses", Miss.from_message, limit, device_id=device))
