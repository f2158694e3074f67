"""Nsight Compute's counters of one launch, and what they say."""

import csv
import io
import re
import subprocess

from daemon import tool

EXECUTABLE = tool("ncu")

# Column: the metrics that give it, by base name, the first that the device has; how it is rolled up.
COLUMNS = {
    "us": (["gpu__time_duration"], ".sum"),
    "tensor pipe %": (
        ["sm__pipe_tensor_op_hmma_cycles_active", "sm__pipe_tensor_cycles_active"],
        ".avg.pct_of_peak_sustained_active",
    ),
    # What tensor cores and fp64 share.
    "tensor and fp64 %": (["sm__pipe_shared_cycles_active"], ".avg.pct_of_peak_sustained_active"),
    "busiest of the SM %": (["sm__throughput"], ".avg.pct_of_peak_sustained_elapsed"),
    "issue slots %": (["sm__inst_issued", "sm__inst_executed"], ".avg.pct_of_peak_sustained_active"),
    "exponentials %": (["sm__inst_executed_pipe_xu"], ".avg.pct_of_peak_sustained_active"),
    "shared memory %": (["l1tex__data_pipe_lsu_wavefronts_mem_shared"], ".avg.pct_of_peak_sustained_elapsed"),
    "shared wavefronts": (["l1tex__data_pipe_lsu_wavefronts_mem_shared"], ".sum"),
    "bank conflicts": (
        ["l1tex__data_bank_conflicts_pipe_lsu_mem_shared", "l1tex__data_bank_conflicts_pipe_lsu"],
        ".sum",
    ),
    "L2 %": (["lts__throughput"], ".avg.pct_of_peak_sustained_elapsed"),
    "DRAM %": (["dram__throughput", "gpu__dram_throughput"], ".avg.pct_of_peak_sustained_elapsed"),
    "occupancy %": (["sm__warps_active"], ".avg.pct_of_peak_sustained_active"),
    "SMs busy %": (["sm__cycles_active"], ".avg.pct_of_peak_sustained_elapsed"),
    "instructions": (["smsp__inst_executed", "sm__inst_executed"], ".sum"),
}
STALLS = [
    "barrier", "branch_resolving", "dispatch_stall", "drain", "gmma", "imc_miss", "lg_throttle", "long_scoreboard",
    "math_pipe_throttle", "membar", "mio_throttle", "misc", "no_instruction", "not_selected", "short_scoreboard",
    "sleeping", "tex_throttle", "wait",
]  # fmt: skip
STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active"
LAUNCH = {"registers": "launch__registers_per_thread", "CTAs": "launch__grid_size"}

MEANING = {
    "barrier": "waiting for other warps at a barrier",
    "long_scoreboard": "waiting for global memory or L2",
    "short_scoreboard": "waiting for shared memory or exponentials",
    "math_pipe_throttle": "the tensor or arithmetic pipe is taken",
    "mio_throttle": "the queue of shared-memory instructions is full",
    "lg_throttle": "the queue of global-memory instructions is full",
    "wait": "fixed latencies between dependent instructions",
    "not_selected": "another warp was issued: enough are ready",
    "no_instruction": "instruction fetch",
}


def available(listing):
    """Base names of `ncu --query-metrics`."""
    return {line.split()[0] for line in listing.splitlines() if re.match(r"\w+__\w+\s", line)}


def chosen(names):
    """{column or stall: metric} of what a device has among `names`."""
    metrics = {}
    for column, (candidates, roll_up) in COLUMNS.items():
        found = next((name for name in candidates if name in names), None)
        if found:
            metrics[column] = found + roll_up
    metrics |= {
        f"stall {reason}": STALL.format(reason) + ".ratio" for reason in STALLS if STALL.format(reason) in names
    }
    return metrics | LAUNCH


def number(text):
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return None


def parse(output, metrics):
    """{entry: {column: value}} of `ncu --csv --page raw --print-units base`, a launch a line; the first of each."""
    lines = output.splitlines()
    begin = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if begin is None:
        raise ValueError(f"ncu printed no table:\n{output[-1500:]}")
    kernels = {}
    for row in csv.DictReader(io.StringIO("\n".join(lines[begin:]))):
        if not number(row["ID"] or "") and row["ID"] != "0":
            continue  # the line of units
        values = {column: number(row.get(metric) or "") for column, metric in metrics.items()}
        if values.get("us") is not None:
            values["us"] /= 1000  # base unit ns
        kernels.setdefault(row["Kernel Name"].partition("(")[0], values)
    return kernels


def stalls(values, count=3):
    """[(reason, share of the time between two issues)], most first."""
    found = {column[6:]: value for column, value in values.items() if column.startswith("stall ") and value}
    total = sum(found.values())
    return sorted(((reason, value / total) for reason, value in found.items()), key=lambda item: -item[1])[:count]


def bound(values):
    """What bounds the launch, in a sentence made of the figures."""

    def get(column):
        return values.get(column) or 0.0

    levels = {
        "DRAM": get("DRAM %"),
        "L2": get("L2 %"),
        "shared memory": get("shared memory %"),
        "the tensor pipe": max(get("tensor pipe %"), get("tensor and fp64 %")),
        "issue slots": get("issue slots %"),
        "exponentials": get("exponentials %"),
    }
    top, share = max(levels.items(), key=lambda item: item[1])
    reason, part = stalls(values, 1)[0] if stalls(values, 1) else ("", 0.0)
    why = (
        f"; warps mostly stall on {reason} ({part:.0%}: {MEANING.get(reason, 'see the profiling guide')})"
        if reason
        else ""
    )
    if get("SMs busy %") < 50:
        return f"too few CTAs: the SMs are busy {get('SMs busy %'):.0f} % of the time{why}"
    if share >= 80:
        return f"{top}, at {share:.0f} % of its peak"
    if share >= 60:
        return f"mostly {top}, at {share:.0f} % of its peak{why}"
    return f"latency: nothing is above {share:.0f} % of its peak ({top}){why}"


def profile(command, metrics, launches, timeout_s=120):
    """Counters of the second run of `command`, whose runs have so many launches each. Metrics that this ncu does not
    know after all are left out."""
    metrics = dict(metrics)
    while True:
        run = subprocess.run(
            [
                *(EXECUTABLE, "--csv", "--page=raw", "--print-units=base", "--target-processes=all"),
                *("--clock-control=none", "--cache-control=none", "--kernel-name=regex:attention"),
                *(f"--launch-skip={launches}", f"--launch-count={launches}"),
                *(f"--metrics={','.join(metrics.values())}", *command),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout_s,
        )
        unknown = [
            column for column, metric in metrics.items() if re.search(rf"Failed to find metric {metric}\b", run.stdout)
        ]
        if not unknown:
            return parse(run.stdout, metrics)
        for column in unknown:
            del metrics[column]


def query():
    listing = subprocess.run([EXECUTABLE, "--query-metrics"], capture_output=True, text=True, check=True, timeout=120)
    return available(listing.stdout)
