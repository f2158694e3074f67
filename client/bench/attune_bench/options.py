"""The command line."""

from __future__ import annotations

import argparse
from pathlib import Path

from attune_bench.device_lock import default_lock_dir
from attune_bench.flash4 import installed_version
from attune_bench.records import FLASH, FLASH4, OURS, OURS_16, TORCH

CONTESTANTS = (OURS, OURS_16, TORCH, FLASH, "cudnn", "efficient", "math", "flex", FLASH4)


def default_contestants(eight_bit: bool = False) -> tuple[str, ...]:
    """All, FlashAttention 4 where it is installed alone, and `attune16` where K and V are of 8 bits."""
    left_out = (() if eight_bit else (OURS_16,)) + (() if installed_version() else (FLASH4,))
    return tuple(name for name in CONTESTANTS if name not in left_out)


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    unknown = [name for name in names if name not in CONTESTANTS]
    if unknown:
        raise argparse.ArgumentTypeError(
            f"contestant {unknown[0]!r} is not known; it must be one of {', '.join(CONTESTANTS)}"
        )
    return names


def _seconds(text: str) -> float:
    value = float(text)
    if not value > 0:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number of seconds")
    return value


def _seconds_from_0(text: str) -> float:
    value = float(text)
    if not value >= 0:
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds; it must be 0 or more")
    return value


def parser() -> argparse.ArgumentParser:
    """Of `attune-bench`."""
    made = argparse.ArgumentParser(
        prog="attune-bench",
        description="Holds attune's kernels against PyTorch's attention, in one run. docs/bench.md says how.",
        epilog="Exit codes: 0 done; 1 an error, or --compare found a difference; 2 a wrong command line; 3 the "
        "deadline came first, and --resume goes on.",
    )
    made.add_argument("problem", nargs="*", help="problems such as b2.h8.q512.d64.f16; default: the grid")

    what = made.add_argument_group("what is benched")
    what.add_argument("--problems", type=Path, metavar="FILE", help="a file of problems, one a line")
    what.add_argument(
        "--eight-bit", action="store_true", help="the problems with K and V of 8 bits (attune_bench/eight_bit.txt)"
    )
    what.add_argument("--smoke", action="store_true", help="three small problems, to try a new host")
    what.add_argument(
        "--contestants",
        type=_names,
        metavar="NAMES",
        help=f"comma-separated; default: all, of {','.join(CONTESTANTS)} {FLASH4} where it is installed "
        f"and {OURS_16} with --eight-bit",
    )
    what.add_argument("--device", default="cuda:0", help="the daemon's name of the device; default: cuda:0")

    daemon = made.add_argument_group("the daemon")
    daemon.add_argument("--server", help="address of a daemon on this host; default: $ATTUNE_SERVER, or this host's")
    daemon.add_argument("--attuned", type=Path, metavar="PATH", help="start this daemon for the run instead")
    daemon.add_argument(
        "--data", type=Path, default=Path("attune-data"), help="its data directory, kept; with --attuned"
    )
    daemon.add_argument("--daemon-libraries", default="", metavar="PATHS", help="its LD_LIBRARY_PATH; with --attuned")
    daemon.add_argument("--kernels", default="", metavar="DIRS", help="its kernel directories; with --attuned")
    daemon.add_argument(
        "--lock-dir", type=Path, help="its directory of device locks; default: the daemon's own; with --attuned"
    )

    tuning = made.add_argument_group("tuning")
    tuning.add_argument("--tune", action="store_true", help="tune each problem first; default: ask only")
    tuning.add_argument(
        "--families",
        type=lambda text: tuple(text.split(",")),
        default=(),
        metavar="NAMES",
        help="only these; default: all",
    )
    tuning.add_argument(
        "--max-time",
        type=_seconds,
        metavar="S",
        help="of trials a problem; default: what `attune tune` takes by itself",
    )

    timing = made.add_argument_group("timing")
    timing.add_argument("--row-time", type=_seconds, default=2.0, metavar="S", help="of samples a problem; default: 2")
    timing.add_argument(
        "--heat-time",
        type=_seconds_from_0,
        default=0.0,
        metavar="S",
        help="run the contestants in turn for so long before a problem's samples: a card at its power limit clocks "
        "lower under lasting load; default: 0",
    )
    timing.add_argument(
        "--deadline", type=_seconds, metavar="S", help="start nothing new after this long; tuning gets half of it"
    )
    timing.add_argument(
        "--record",
        action=argparse.BooleanOptionalAction,
        help="record the others' times in the daemon as baselines; default: when attune takes part",
    )

    output = made.add_argument_group("what is written")
    output.add_argument(
        "--out", type=Path, default=Path("docs/benchmarks"), metavar="DIR", help="default: docs/benchmarks"
    )
    output.add_argument("--resume", type=Path, metavar="JSONL", help="go on with the run of this file")
    output.add_argument("--report", type=Path, metavar="JSONL", help="write the documents of a run again, and end")
    output.add_argument(
        "--compare", type=Path, nargs=2, metavar="JSONL", help="say whether two runs agree within 2 %%, and end"
    )
    return made


def parse(arguments: list[str]) -> argparse.Namespace:
    """The command line as values; what contradicts itself ends the process with code 2."""
    made = parser()
    options = made.parse_args(arguments)
    given = [name for name in ("problem", "problems", "smoke", "eight_bit") if getattr(options, name)]
    if len(given) > 1:
        made.error(f"{' and '.join(given)} each say what is benched; give one of them")
    if options.server and options.attuned:
        made.error("--server and --attuned each say which daemon; give one of them")
    if options.contestants is None:
        options.contestants = default_contestants(options.eight_bit)
    if OURS_16 in options.contestants and OURS not in options.contestants:
        made.error(f"'{OURS_16}' is what '{OURS}' is compared with, which --contestants leaves out")
    if options.tune and OURS not in options.contestants:
        made.error(f"--tune tunes for the contestant '{OURS}', which --contestants leaves out")
    if options.lock_dir is None:
        options.lock_dir = default_lock_dir(options.data)
    if options.record is None:
        options.record = OURS in options.contestants
    return options
