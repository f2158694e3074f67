"""A daemon with nights in its store, and beside them texts that strangers chose.

Environment: ATTUNE_YEAR_NIGHTS, 365 for a whole year, and ATTUNE_YEAR_TRIALS.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))
from harness import ATTUNE, BUILD, Daemon, wait_until  # noqa: E402, F401

FILL_YEAR = BUILD / "tests/dashboard/fill_year"
SEED = 7
# Each is some two hundred commits.
NIGHTS = os.environ.get("ATTUNE_YEAR_NIGHTS", "30")
TRIALS = os.environ.get("ATTUNE_YEAR_TRIALS", "6000")

# Were it read as HTML, window.hostile would be set.
HOSTILE = "<img src=x onerror=window.hostile=1>"

# Small enough for the CPU; the year's problems are of other devices.
LIVE = "b1.h1.q16.d32.f16"
PLAN = f"""
title: "{HOSTILE}"
shapes {{ problem: "{LIVE}" }}
families: "attention_opencl"
budget {{ trials_per_problem: 2 }}
"""


def addresses(daemon, truth):
    """Of every page: {"health": "#/health"}, of a problem that has become slower where one is needed."""
    slower = next(row for row in truth["slower"] if row["why"] == "driver")
    sweep = next(job for job in daemon.json("jobs") if not job["problem"])
    problem = f"{slower['problem']}?class={slower['device_class']}"
    return {
        "health": "#/health",
        "problem": f"#/problem/{problem}",
        "jobs": "#/jobs",
        "job": f"#/job/{sweep['operation']}",
        "space": f"#/space/{problem}",
        "compare": "#/compare",
        "roofline": "#/roofline",
        "devices": "#/devices",
    }


class StoredYear:
    def __init__(self, seed=SEED, nights=NIGHTS, trials=TRIALS):
        self._directory = tempfile.TemporaryDirectory(prefix="attune-dashboard-")
        self.directory = pathlib.Path(self._directory.name)
        self.daemon = Daemon(self.directory, flags=["--trial_timeout=10m"])
        command = [str(FILL_YEAR), f"--data_dir={self.daemon.data}", f"--seed={seed}", f"--nights={nights}"]
        command.append(f"--trials={trials}")
        # What is true of it: {"slower": [{"problem", "device_class", ...}], ...}.
        self.truth = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        self.daemon.start()

    def add_hostile_texts(self):
        """As the title of a sweep, a baseline's contender and note, and the reason of a pin."""
        daemon = self.daemon
        plan = self.directory / "hostile.textproto"
        plan.write_text(PLAN)
        daemon.attune("sweep", str(plan))
        daemon.attune("baseline", LIVE, HOSTILE, "43.1")
        variant = daemon.json("best", LIVE)[0]["variant"]
        daemon.attune("serve", LIVE, variant, "--why", HOSTILE)

    def close(self):
        if self.daemon.process and self.daemon.process.poll() is None:
            self.daemon.kill()
        self._directory.cleanup()
