"""How long it takes until another host has the job of one that was lost, and how much of that is not the fleet's doing.

A host that could take a job is one that is there, takes work, and holds none. As long as there is no such
host, or no database, nobody can be late.
"""

import dataclasses
import itertools

import fleet_audit

TTL = 20.0  # seconds: of a lease, from when it was last renewed
LATE = 5.0  # after its end, what claiming takes at most
JOBS_AT_ONCE = 1  # of a host with one card (JobLanes::HasRoom in server/jobs/cards/job_lanes.h)


@dataclasses.dataclass
class Loss:
    """A host that was killed, or cut off, while it may have held jobs."""

    host: str  # as holders are called
    kind: str
    at: float


@dataclasses.dataclass
class Takeover:
    job: str
    loss: Loss
    by: str
    took: float  # from the loss to the claim
    late: float  # from the end of the lease, beside the time in which nobody could have taken it


def takeovers(rows, losses, away, lag=lambda begin, end: 0.0):
    """`away`: (begin, end) in which a host takes no work, by its name, and of the database, by None. `lag`: how long
    the machine kept this process waiting in a time."""
    histories = fleet_audit.histories(rows)
    held = {}
    for changes in histories.values():
        for host, begin, end in _held(changes):
            held.setdefault(host, []).append((begin, end))
    busy = {host: _overlaps(times) for host, times in held.items()}
    hosts = {host for host in away if host is not None}
    found = []
    for loss in losses:
        for name, changes in histories.items():
            claim = _claim_after(changes, loss)
            if claim is None or _lost_again(loss, losses, claim["at"]):
                continue
            due = claim["was_until"]
            others = [away[host] + busy.get(host, []) for host in hosts - {loss.host}]
            nobody = _nobody(due, claim["at"], others, away.get(None, []))
            late = claim["at"] - due - nobody - lag(due, claim["at"])
            found.append(Takeover(name, loss, claim["holder"], claim["at"] - loss.at, max(0.0, late)))
    return found


def late_takeovers(found, most=LATE):
    return [
        f"{takeover.job}: {takeover.by} took it {takeover.took:.1f} s after {takeover.loss.host} was lost "
        f"({takeover.loss.kind}), {takeover.late:.1f} s after its lease while a host was free"
        for takeover in found
        if takeover.late > most
    ]


def proves_nothing(found, losses, refused, stopped):
    """What a run was to show and did not. `refused`: writes; `stopped`: jobs that their holders stopped themselves,
    because they could not renew the lease."""
    faults = []
    if losses and not found:
        faults.append(f"{len(losses)} hosts were lost, and none of their jobs was taken over")
    # Of those that were cut off a write was under way, and arrived later; unless they had stopped the job before it.
    cut_off = sum(takeover.loss.kind == "cut a host off" for takeover in found)
    if cut_off and refused == 0 and (stopped == 0 or cut_off > 9):
        faults.append(f"{cut_off} jobs were taken from hosts that were cut off, and no write was refused")
    return faults


def _held(changes):
    """(host, begin, end) of each time in which somebody held the job."""
    holder, begin = None, 0.0
    for change in changes:
        if holder is not None and (change["holder"] != holder or change["done"] or fleet_audit.is_lease(change)):
            yield holder, begin, change["at"]
            holder = None
        if fleet_audit.is_lease(change):
            holder, begin = change["holder"], change["at"]


def _overlaps(times):
    """When a host has as many jobs as it takes: where so many of these (begin, end) overlap."""
    edges = sorted({edge for time in times for edge in time})
    return [
        (left, right)
        for left, right in itertools.pairwise(edges)
        if sum(begin <= left and right <= end for begin, end in times) >= JOBS_AT_ONCE
    ]


def _claim_after(changes, loss):
    """The first lease by another of a job that the lost host held; None where that went on with it itself."""
    before = [change for change in changes if change["at"] <= loss.at]
    after = [change for change in changes if change["at"] > loss.at]
    if not before or before[-1]["done"] or before[-1]["holder"] != loss.host or not after:
        return None
    claim = after[0]
    return claim if fleet_audit.is_lease(claim) and claim["holder"] != loss.host else None


def _lost_again(loss, losses, until):
    """Whether the host came back, and renewed what it held, before it was lost once more."""
    return any(other.host == loss.host and loss.at < other.at < until for other in losses)


def _nobody(begin, end, hosts, database):
    """How long, in a time, the database was away or each of the hosts was."""
    edges = {begin, end}
    for times in (*hosts, database):
        edges |= {edge for time in times for edge in time if begin < edge < end}
    total = 0.0
    for left, right in itertools.pairwise(sorted(edges)):
        if _covers(database, left, right) or all(_covers(times, left, right) for times in hosts):
            total += right - left
    return total


def _covers(times, left, right):
    return any(begin <= left and right <= end for begin, end in times)
