"""What each toggle is worth, from the trials of an exhaustive run: tests/gpu/toggles.py exhaustive.jsonl.gz PROBLEM ...

For every toggle two comparisons, each between best variants, with tile sizes, warps and the rest left free:
  alone     all toggles off, against only this one on
  together  everything allowed, against everything but this one
Writes Markdown.
"""

import gzip
import json
import sys

# name, parameter, what "on" means
TOGGLES = [
    ("kv_splits", "KV_SPLITS", lambda value: value > 1),
    ("persistent", "PERSISTENT", lambda value: value > 0),
    ("WMMA", "MMA", lambda value: value > 0),
    # The family attention_mma: nothing of it without mma.sync, K and V in buffers, swizzled.
    ("mma.sync", "K_STAGES", lambda value: value > 0),
    ("teams", "WARPS_N", lambda value: value > 1),
    ("Q in registers", "Q_REGISTERS", lambda value: value > 0),
    ("lazy rescale", "LAZY_RESCALE", lambda value: value > 0),
    ("cp.async", "CP_ASYNC_STAGES", lambda value: value > 0),
    ("swizzle", "SWIZZLE", lambda value: value > 0),
]


def states(trial):
    """Which toggles are on in a trial."""
    return {name: on(int(trial["parameters"].get(parameter, 0))) for name, parameter, on in TOGGLES}


def best(trials, allowed):
    fitting = [trial for trial in trials if allowed(states(trial))]
    return min(fitting, key=lambda trial: trial["latency_ms"], default=None)


def cell(trial):
    return "none" if trial is None else f"{trial['latency_ms'] * 1000:.2f}"


def ratio(slow, fast):
    return "" if slow is None or fast is None else f"{slow['latency_ms'] / fast['latency_ms']:.2f}x"


def table(problem, trials):
    ok = [t for t in trials if t["problem"] == problem and t["verdict"] == "OK" and t.get("latency_ms")]
    yield f"### {problem}: {len(ok)} OK variants\n"
    everything = best(ok, lambda on: True)
    nothing = best(ok, lambda on: not any(on.values()))
    yield (
        f"All toggles off: {cell(nothing)} us. Everything allowed: {cell(everything)} us, by "
        f"`{everything['variant']}`, {everything['ctas']} CTAs on {everything['sm_count']} SMs.\n"
    )
    yield "| toggle | only it on (us) | gain alone | all but it (us) | gain together |"
    yield "|---|---|---|---|---|"
    for name, _, _ in TOGGLES:
        alone = best(ok, lambda on: on[name] and not any(v for k, v in on.items() if k != name))
        without = best(ok, lambda on: not on[name])
        yield f"| {name} | {cell(alone)} | {ratio(nothing, alone)} | {cell(without)} | {ratio(without, everything)} |"
    yield ""
    yield "Best by number of CTAs of the main launch:\n"
    yield "| CTAs | CTAs an SM of the device | best (us) | variant |"
    yield "|---|---|---|---|"
    for ctas in sorted({t["ctas"] for t in ok}):
        fastest = min((t for t in ok if t["ctas"] == ctas), key=lambda t: t["latency_ms"])
        yield f"| {ctas} | {ctas / fastest['sm_count']:.2f} | {cell(fastest)} | `{fastest['variant']}` |"
    yield ""


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    with gzip.open(sys.argv[1], "rt") as lines:
        trials = [trial for trial in map(json.loads, lines) if trial["type"] == "trial"]
    for problem in sys.argv[2:]:
        print("\n".join(table(problem, trials)))


if __name__ == "__main__":
    main()
