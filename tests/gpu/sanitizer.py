"""compute-sanitizer: its tools, and what each says."""

import dataclasses
import re
import subprocess

from daemon import tool

EXECUTABLE = tool("compute-sanitizer")
ERROR_EXIT = 99

# memcheck: allocations are kept apart, so that what lies behind one is nobody's. racecheck: hazards of shared memory,
# those of asynchronous copies (cp.async) among them.
TOOLS = {
    "memcheck": ["--padding=4096"],
    "racecheck": ["--racecheck-memcpy-async=yes"],
    "synccheck": [],
    "initcheck": [],
}


@dataclasses.dataclass(frozen=True)
class Report:
    errors: int | None  # None: the tool came to no result
    text: str


def parse(tool, output, code):
    """The report of a tool's output and exit code."""
    if tool == "racecheck":
        summary = re.search(r"RACECHECK SUMMARY: (\d+) hazards? displayed", output)
    else:
        summary = re.search(r"ERROR SUMMARY: (\d+) errors?", output)
    if summary is None:
        return Report(None, output[-1500:])
    errors = int(summary[1])
    if (code == 0) != (errors == 0) or code not in (0, ERROR_EXIT):
        return Report(errors or None, output[-1500:])
    return Report(errors, output[:1500] if errors else "")


def watch(tool, command, timeout_s=120):
    """Runs `command` under `tool`."""
    sanitizer = [EXECUTABLE, f"--tool={tool}", f"--error-exitcode={ERROR_EXIT}", "--print-limit=5", *TOOLS[tool]]
    try:
        run = subprocess.run(
            [*sanitizer, *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout_s
        )
    except subprocess.TimeoutExpired:
        return Report(None, f"not done after {timeout_s} s")
    return parse(tool, run.stdout, run.returncode)


def version():
    output = subprocess.run([EXECUTABLE, "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"Version (\S+)", output)
    return found[1] if found else output.strip()
