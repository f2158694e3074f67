"""What must be true of a fleet's database once all hosts are back and all jobs have ended, whatever happened before.

Each check returns what is wrong, a line for each offender. `rows` runs a query on the database, which has the tables of
fleet_audit.py.
"""

import re

import fleet_audit
from harness import holds

# Of verdicts, those that no kill, stop or lost connection may bring about are left out.
RIGHT_VERDICTS = ("OK", "UNSTABLE", "SLOW", "LOST")
MOST_LOSSES = 3


def jobs_ended_once(rows):
    """Each by its last lease, by the one who held that; and nothing changed it afterwards."""
    faults = []
    for name, changes in fleet_audit.histories(rows).items():
        ends = [change for change in changes if fleet_audit.is_end(change)]
        if len(ends) != 1:
            faults.append(f"{name} ended {len(ends)} times, by {[end['writer'] for end in ends]}")
        last = max(change["epoch"] for change in changes)
        for end in ends:
            if end["epoch"] < last:
                faults.append(f"{name} was ended under epoch {end['epoch']} by {end['writer']}; its last is {last}")
            if end["writer_holder"] != end["holder"]:
                faults.append(f"{name} was ended by {end['writer']} ({end['writer_holder']}), held by {end['holder']}")
        faults += [
            f"{name} was changed by {change['writer']} after its end" for change in changes if change["was_done"]
        ]
    return faults


def leases_taken_in_turn(rows):
    """Each lease has the next epoch, and begins when the one before is over or was given back."""
    faults = []
    for name, changes in fleet_audit.histories(rows).items():
        for change in changes:
            if change["was_epoch"] is None:
                continue
            if not change["was_epoch"] <= change["epoch"] <= change["was_epoch"] + 1:
                faults.append(
                    f"{name}: after epoch {change['was_epoch']} came {change['epoch']}, of {change['writer']}"
                )
            if fleet_audit.is_lease(change) and change["was_holder"] not in (None, change["holder"]):
                early = change["was_until"] - change["at"]
                if early > 0:
                    faults.append(
                        f"{name}: {change['holder']} took it from {change['was_holder']} {early:.3f} s too early"
                    )
    return faults


def writes_by_holders(rows):
    """Trials and promotions are of whoever held the job at that moment."""
    return [
        f"{write['what']} of {write['job']} was written by {write['writer']} ({write['writer_holder']}) while "
        f"{write['holder']} held it under epoch {write['epoch']}"
        for write in rows(fleet_audit.WRITES)
        if write["writer_holder"] != write["holder"]
    ]


def nothing_is_stuck(rows):
    jobs = rows("SELECT name, holder, epoch, lease_until FROM jobs WHERE NOT done ORDER BY id")
    faults = [
        f"{job['name']} is unfinished, epoch {job['epoch']}, "
        + (f"held by {job['holder']} until {job['lease_until']}" if job["holder"] else "and nobody holds it")
        for job in jobs
    ]
    left = rows("SELECT name, count(*) FROM job_writes JOIN jobs ON jobs.id = job_id WHERE done GROUP BY name")
    faults += [f"{job['name']} has ended, and keeps {job['count']} rows of job_writes" for job in left]
    sessions = rows(
        "SELECT pid, application_name, query FROM pg_stat_activity"
        " WHERE state LIKE 'idle in transaction%' AND state_change < now() - interval '10 s'"
    )
    return faults + [
        f"session {session['pid']} of {session['application_name']} stays in a transaction after {session['query']!r}"
        for session in sessions
    ]


def incumbents_are_a_chain(rows):
    """One is served of each problem, class and policy: the last; and each names the one before. Nobody rolls back."""
    chains = {}
    for row in rows(
        "SELECT incumbents.id, text AS problem, fingerprint, policy, previous_id, served FROM incumbents"
        " JOIN problems ON problems.id = problem_id JOIN device_classes ON device_classes.id = class_id ORDER BY id"
    ):
        chains.setdefault((row["problem"], row["fingerprint"][:8], row["policy"]), []).append(row)
    faults = []
    for key, chain in chains.items():
        what = "{}, class {}, policy {}".format(*key)
        served = [row["id"] for row in chain if row["served"]]
        if served != [chain[-1]["id"]]:
            faults.append(f"{what}: incumbents {served} are served; the last is {chain[-1]['id']}")
        before = None
        for row in chain:
            if row["previous_id"] != before:
                faults.append(f"{what}: incumbent {row['id']} follows {row['previous_id']}; before it was {before}")
            before = row["id"]
    return faults


def answers_are_promoted(rows, answers):
    """`answers`: (variant, provenance) of each (member, problem), long enough after the last promotion."""
    promoted = {
        row["problem"]: row["variant"]
        for row in rows(
            "SELECT problems.text AS problem, variants.text AS variant FROM incumbents"
            " JOIN trials ON trials.id = trial_id JOIN problems ON problems.id = incumbents.problem_id"
            " JOIN variants ON variants.id = variant_id WHERE served"
        )
    }
    return [
        f"{member} answers {problem} with {variant} ({provenance}); promoted is {promoted[problem]}"
        for (member, problem), (variant, provenance) in answers.items()
        if problem in promoted and (variant != promoted[problem] or provenance not in ("EXACT", "TIE"))
    ]


def trials_are_kept(rows, seen):
    """`seen`: (job, variant) of each trial that was ever listed, by its name."""
    stored = {
        f"trials/{row['id']}": (row["job"], row["variant"])
        for row in rows(
            "SELECT trials.id, convert_from(job, 'UTF8') AS job, text AS variant FROM trials"
            " JOIN variants ON variants.id = variant_id"
        )
    }
    lost = [f"{name} of {what[0]} was listed and is gone" for name, what in seen.items() if name not in stored]
    return lost + [
        f"{name} was listed as {what}, and is {stored[name]}"
        for name, what in seen.items()
        if name in stored and stored[name] != what
    ]


def trials_are_written_once(rows):
    return [
        f"{twice['job']}: {', '.join(f'trials/{id}' for id in twice['ids'])} are the same, written again"
        for twice in rows(
            "SELECT convert_from(job, 'UTF8') AS job, array_agg(id ORDER BY id) AS ids FROM trials"
            " JOIN trial_bodies ON trial_id = id GROUP BY job, problem_id, variant_id, policy, finish_ns, message"
            " HAVING count(*) > 1"
        )
    ]


def variants_are_tried_once(trials):
    """A job, whoever went on with it, does not try again the variant whose last trial is its own and holds. With
    --retry-known it does where another job has tried it meanwhile. `trials`: as listed."""
    faults, last = [], {}
    for trial in sorted(trials, key=lambda trial: int(trial["trial"].split("/")[1])):
        former = last.get((trial["problem"], trial["variant"]))
        if former is not None and former["job"] == trial["job"] and holds(former):
            faults.append(
                f"{trial['job']}: {trial['trial']} is of {trial['variant']}, as {former['trial']}, which holds"
            )
        last[trial["problem"], trial["variant"]] = trial
    return faults


def verdicts_are_right(trials):
    """No variant is blamed for what befell hosts."""
    return [
        f"{trial['trial']} of {trial['job']}: {trial['variant']} is {trial['verdict']}"
        for trial in trials
        if trial["verdict"] not in RIGHT_VERDICTS
    ]


def ends_have_reasons(rows, jobs):
    """None failed but those that three hosts were lost with; only what somebody cancelled is. `jobs`: as listed."""
    stored = {row["name"]: row for row in rows("SELECT name, cancelled, lost_by FROM jobs")}
    faults = []
    for job in jobs:
        name, state = job["operation"], job["state"]
        lost_by = [host for host in stored[name]["lost_by"].split(",") if host]
        if state == "FAILED":
            named = re.match(rf"its host was lost {MOST_LOSSES} times \((.*?)\)", job["error"] or "")
            if named is None:
                faults.append(f"{name} FAILED: {job['error']}")
            elif named[1].split(", ") != lost_by:
                faults.append(f"{name} FAILED: {job['error']}; it was lost with {lost_by}")
        elif len(lost_by) >= MOST_LOSSES and state != "CANCELLED":
            faults.append(f"{name} is {state} though {', '.join(lost_by)} were lost with it")
        if state == "CANCELLED" and not stored[name]["cancelled"]:
            faults.append(f"{name} is CANCELLED, and nobody has asked for that")
    listed = {job["operation"] for job in jobs}
    return faults + [f"{name} is stored and not listed" for name in stored if name not in listed]


def answers_were_kept(jobs, accepted, watched):
    """Whatever was accepted is there, and ended as its watchers were told. `watched`: (job, state) of each."""
    states = {job["operation"]: job["state"] for job in jobs}
    faults = [f"{name} was accepted and is gone" for name in accepted if name not in states]
    return faults + [
        f"a watcher of {name} was told {told}; it is {states.get(name)}"
        for name, told in watched
        if told != states.get(name)
    ]


def equal_requests_are_one_job(rows, pairs):
    """`pairs`: (request_id or None, jobs) that were answered to two gateways at once. Without a request_id the second
    is another job only where the first had ended."""
    faults = []
    histories = fleet_audit.histories(rows)
    for request_id, names in pairs:
        if len(set(names)) == 1:
            continue
        if request_id is not None:
            faults.append(f"request_id {request_id} is of {' and of '.join(names)}")
            continue
        if gone := [name for name in names if name not in histories]:
            faults.append(f"{' and '.join(gone)} of the equal requests {' and '.join(names)} is gone")
            continue
        one, two = sorted((histories[name] for name in names), key=lambda changes: changes[0]["at"])
        end = next((change["at"] for change in one if fleet_audit.is_end(change)), None)
        if end is None or two[0]["at"] < end:
            faults.append(f"{two[0]['name']} was made while {one[0]['name']}, which is the same, had not ended")
    return faults
