"""What space_report says of spaces of variants, for the scripts of this folder."""

import csv
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
KERNELS = ROOT / "kernels_src"


def report(build, profile, family, kernels, *options):
    """Runs space_report of `build`, on those limits and sources; its output. Ends the script where it fails."""
    command = [
        build / "tests/space/space_report",
        f"--worker={build}/bin/attune-worker",
        f"--profile={profile}",
        f"--families={family}",
        f"--kernels_dir={kernels}",
        *options,
    ]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))[:500]} ended with {done.returncode}")
    return done.stdout


def read(path):
    """The rows of a CSV file that it wrote."""
    with path.open() as lines:
        return list(csv.DictReader(lines))
