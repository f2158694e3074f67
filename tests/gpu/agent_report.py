"""What an agent's loops (agent.py) came to: what does not hold, and a page for docs/benchmarks."""

import re
import time

# Of a kernel's counters (docs/profile.md): title, how it is written.
COUNTERS = {
    "ctas": ("CTAs", "{:,.0f}"),
    "registers": ("registers", "{:.0f}"),
    "sms_busy": ("SMs busy", "{:.0%}"),
    "occupancy": ("occupancy", "{:.0%}"),
    "issue_slots": ("issue slots", "{:.0%}"),
    "tensor_pipe": ("tensor pipe", "{:.0%}"),
    "shared_memory": ("shared memory", "{:.0%}"),
    "l2_sectors": ("L2 sectors", "{:,.0f}"),
    "instructions": ("instructions", "{:,.0f}"),
}


def row_of(step):
    """The verdict's line of the problem; empty where the call failed."""
    return (step["verdict"].get("problems") or [{}])[0]


def time_of(step):
    """In microseconds; None where it was not timed."""
    timing = (row_of(step).get("trial") or {}).get("time")
    return timing["median_us"] if timing else None


def kept(loop):
    return [step for step in loop["steps"] if step["verdict"].get("decision") == "KEEP"]


def speedup(loop):
    """Of the last that was kept over the first; 0 where there are none."""
    steps = kept(loop)
    return time_of(steps[0]) / time_of(steps[-1]) if steps else 0


def counters_of(step):
    """Of its kernels, each with its counters."""
    return [kernel["counters"] for kernel in step.get("profile", {}).get("kernels", [])]


def failures(loops, least_speedup, most_submissions):
    """What does not hold, a line each."""
    failed = []
    for loop in loops:
        problem, steps = loop["problem"], loop["steps"]
        if len(steps) > most_submissions:
            failed.append(f"{problem}: {len(steps)} submissions; allowed: {most_submissions}")
        if not steps or time_of(steps[0]) is None or steps[0] not in kept(loop):
            failed.append(f"{problem}: the starter was not kept")
            continue
        for number, step in enumerate(steps, 1):
            verdict = (row_of(step).get("trial") or {}).get("verdict")
            if verdict != "OK":
                failed.append(f"{problem}: submission {number} is {verdict}: {step['verdict']}")
            elif not counters_of(step) or not all(counters_of(step)):
                failed.append(f"{problem}: submission {number} has no counters: {step.get('profile')}")
            elif not step["explain"].get("findings"):
                failed.append(f"{problem}: submission {number} is not explained: {step['explain']}")
        if len(loop["iterations"]) != len(steps) or len(loop["summary"]) != len(steps):
            failed.append(f"{problem}: the server has {len(loop['iterations'])} iterations of {len(steps)}")
        if speedup(loop) < least_speedup:
            failed.append(f"{problem}: {speedup(loop):.2f} times as fast; wanted: {least_speedup}")
    return failed


def counter_table(loop):
    titles = [title for title, _ in COUNTERS.values()]
    lines = [
        "| | time us | over the first | verdict | " + " | ".join(titles) + " | bound |",
        "|---:|---:|---:|---|" + "---:|" * len(titles) + "---|",
    ]
    first = time_of(loop["steps"][0]) if loop["steps"] else None
    for number, step in enumerate(loop["steps"], 1):
        taken = time_of(step)
        found = (counters_of(step) or [{}])[0]
        cells = [f"{taken:.2f}", f"{first / taken:.2f}x"] if taken and first else ["", ""]
        cells.append(step["verdict"].get("decision", "ERROR"))
        cells += [style.format(found[name]) if name in found else "" for name, (_, style) in COUNTERS.items()]
        cells.append(step.get("profile", {}).get("bound", ""))
        lines.append(f"| {number} | " + " | ".join(cells) + " |")
    return lines


def before(loop):
    """What the agent saw before it began."""
    best, families = loop["before"]["best"], loop["before"]["preflight"].get("families", [])
    variants = sum(family.get("variants", 0) for family in families)
    served = f"`best` answers {best['provenance']}" if "provenance" in best else best.get("error", "")
    return f"Before: {variants:,} variants that nobody has tried (`preflight`); {served}."


def without_diffs(summary):
    """The page of `attune summary --loop --markdown` below its title, up to the diffs, two levels down."""
    text = re.split(r"^## Iteration ", summary, maxsplit=1, flags=re.M)[0]
    text = text.split("\n", 1)[1].strip()
    return re.sub(r"^## ", "### ", text, flags=re.M)


def markdown(found, summaries):
    """`summaries`: of each loop's name the page of `attune summary --loop NAME --markdown`."""
    devices = ", ".join(
        f"{device['model']} ({device['sms']} SMs)" for device in found["devices"] if device["backend"] == "CUDA"
    )
    lines = [
        f"# An agent's loop over MCP, {time.strftime('%Y-%m-%d')}",
        "",
        f"`python3 tests/gpu/agent.py --bundle bundle --out out`, on {devices}: a scripted agent, which knows a daemon",
        "by the tools of attune-mcp alone, begins with the starter kernel and goes on by its next steps",
        "(`attune new-kernel --backend cuda --step N`): parallelism, tensor cores, asynchronous copies; then by",
        "parameters, in the order that the counters suggest. A change's base is the last kernel that was kept.",
        "",
        "| problem | submissions | first us | last kept us | |",
        "|---|---:|---:|---:|---:|",
    ]
    for loop in found["loops"]:
        steps = kept(loop)
        if steps:
            first, last = time_of(steps[0]), time_of(steps[-1])
            lines.append(
                f"| {loop['problem']} | {len(loop['steps'])} | {first:.2f} | {last:.2f} | {first / last:.2f}x |"
            )
    for loop in found["loops"]:
        lines += ["", f"## {loop['problem']}", "", before(loop), "", *counter_table(loop), ""]
        lines += ["`attune summary --loop " + loop["loop"] + " --markdown`, without its diffs:", ""]
        lines += [without_diffs(summaries[loop["loop"]])]
    if found["failed"]:
        lines += ["", "## What does not hold", "", *(f"- {what}" for what in found["failed"])]
    return "\n".join(lines) + "\n"
