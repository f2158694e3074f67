"""A real daemon with real workers, driven through the command line as a user would.

Environment: ATTUNE_BUILD is the build directory.
"""

import atexit
import contextlib
import ctypes
import functools
import json
import os
import pathlib
import select
import shutil
import signal
import struct
import subprocess
import tempfile
import threading
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("ATTUNE_BUILD", ROOT / "build"))
ATTUNED = BUILD / "bin/attuned"
ATTUNE = BUILD / "bin/attune"
KERNELS = ROOT / "kernels_src"
TEST_FAMILIES = ROOT / "tests/families"

# Sanitizer builds on a busy two-core machine are an order of magnitude slower than real ones.
PATIENCE = 300
BACK_WITHIN = 5.0  # seconds, from the end of a worker to the next one's start


class Daemon:
    """attuned on a Unix socket of its own; `log` is everything it wrote so far."""

    def __init__(self, directory, kernels=(KERNELS,), flags=()):
        self.directory = pathlib.Path(directory)
        self.data = self.directory / "data"
        self.address = f"unix:{self.directory}/attuned.sock"
        self.kernels = kernels
        self.flags = list(flags)
        self.user = None  # whose it is; None: the tests'
        self.process = None
        self.log = ""

    def command(self):
        return [
            str(ATTUNED),
            f"--listen={self.address}",
            f"--data_dir={self.data}",
            f"--lock_dir={self.directory}/locks",
            "--kernels_dir=" + ",".join(str(path) for path in self.kernels),
            *self.flags,
        ]

    def start(self, environment=None, until=" serving "):
        """Starts it and waits until it logs `until`."""
        self.log = ""
        self._until = until
        self._serving = threading.Event()
        self.process = subprocess.Popen(
            self.command(),
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **(environment or {})},
            user=self.user,
        )
        self._reader = threading.Thread(target=self._follow, daemon=True)
        self._reader.start()
        if not self._serving.wait(PATIENCE) or self.process.poll() is not None:
            self.kill()
            raise AssertionError(f"the daemon did not start:\n{self.log}")
        return self

    def _follow(self):
        self._read()
        self.process.wait()  # it closes its log a moment before it has ended
        self._serving.set()

    def _read(self):
        with self.process.stderr as lines:
            for line in lines:
                self.log += line
                if self._until in line:
                    self._serving.set()

    def kill(self):
        """kill -9, the whole daemon; its workers end by themselves."""
        self.process.kill()
        self.process.wait()
        self._reader.join(PATIENCE)

    def stop(self):
        """SIGTERM, and what a clean stop must look like."""
        if self.process is None or self.process.poll() is not None:
            return
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        if code != 0:
            raise AssertionError(f"the daemon ended with {code}:\n{self.log}")

    def attune(self, *arguments, check=True, timeout=PATIENCE):
        result = run_attune("--server", self.address, *arguments, timeout=timeout)
        if check and result.returncode != 0:
            raise AssertionError(
                f"attune {' '.join(arguments)} ended with {result.returncode}:\n"
                f"{result.stdout}{result.stderr}\ndaemon:\n{self.log}"
            )
        return result

    def json(self, *arguments, **options):
        """The lines of --format=json, parsed."""
        result = self.attune("--format=json", *arguments, **options)
        return [json.loads(line) for line in result.stdout.splitlines()]

    def trials(self, problem, *arguments):
        return self.json("trials", problem, "--limit", "0", *arguments)

    def popen(self, *arguments):
        return subprocess.Popen(
            [str(ATTUNE), "--server", self.address, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


def run_attune(*arguments, timeout=PATIENCE, env=None):
    return subprocess.run(
        [str(ATTUNE), *arguments],
        capture_output=True,
        text=True,
        timeout=timeout,
        env={**os.environ, **(env or {})},
    )


def without_opencl(directory):
    """An environment in which OpenCL finds no device. `directory`: one of the test's."""
    empty = pathlib.Path(directory) / "no_vendors"
    empty.mkdir(exist_ok=True)
    return {"OCL_ICD_VENDORS": str(empty), "OPENCL_VENDOR_PATH": str(empty)}


class WallClock:
    """The wall clock of daemons that start with its environment."""

    def __init__(self, directory):
        self._file = pathlib.Path(directory) / "offset"
        self._file.touch()
        self.set(0)
        self.environment = {
            "LD_PRELOAD": str(BUILD / "tests/e2e/libwall_clock.so"),
            "ATTUNE_WALL_CLOCK": str(self._file),
        }

    def set(self, seconds):
        """It is off by so much from now on."""
        self.off = seconds
        # In place: a daemon has the file mapped.
        with open(self._file, "r+b") as file:
            file.write(struct.pack("=q", seconds))


class Writes:
    """Writes to a file by whomever, as inotify(7) tells them: for what must happen in the middle of one."""

    MODIFIED = 2  # IN_MODIFY

    def __init__(self, path):
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._fd = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._fd < 0 or self._libc.inotify_add_watch(self._fd, os.fsencode(path), self.MODIFIED) < 0:
            raise OSError(ctypes.get_errno(), f"cannot watch {path}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self._fd)

    def forget(self):
        """Those so far are none to wait for."""
        with contextlib.suppress(BlockingIOError):
            os.read(self._fd, 1 << 16)

    def wait(self, seconds):
        """Whether there was one in time."""
        return bool(select.select([self._fd], [], [], seconds)[0])


def wait_until(what, condition, seconds=PATIENCE):
    """What the condition gives once that is true."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"waited {seconds} s for {what}")
        time.sleep(0.02)
    return found


def holds(trial):
    """Whether a tuning takes the trial as known (server/catalog/holds.h): a busy machine's times are taken again."""
    return trial["verdict"] not in ("LOST", "UNSTABLE") and not trial["contended"] and not trial["given_up"]


class DaemonTest(unittest.TestCase):
    """Each test has a directory of its own and may start daemons in it."""

    maxDiff = None

    def assertNoneAgain(self, trials, after=None):
        """That no variant of a problem was tried again once a trial of it held. `after`: the last sweep's report; the
        time of an incumbent that a sweep saw become faster is kept as a trial."""
        faster = {row["problem"] for row in (after or {"rows": []})["rows"] if row["outcome"] == "FASTER"}
        held = set()
        for trial in sorted(trials, key=lambda trial: int(trial["trial"].split("/")[1])):
            tried = (trial["problem"], trial["variant"])
            self.assertNotIn(tried, held)
            if holds(trial) and trial["problem"] not in faster:
                held.add(tried)

    def setUp(self):
        self._directory = tempfile.TemporaryDirectory(prefix="attune-e2e-")
        self.addCleanup(self._directory.cleanup)
        self.directory = pathlib.Path(self._directory.name)

    def daemon(self, kernels=(KERNELS,), flags=(), start=True):
        daemon = Daemon(self.directory, kernels, flags)
        self.addCleanup(lambda: daemon.process and daemon.process.poll() is None and daemon.kill())
        return daemon.start() if start else daemon

    def tuned_daemon(self, *tuning, **options):
        """A daemon that starts on what `attune tune` with these arguments left: run once a test program."""
        shutil.copytree(tuned_data(tuning), self.directory / "data")
        return self.daemon(**options)


@functools.cache
def tuned_data(tuning):
    directory = tempfile.TemporaryDirectory(prefix="attune-tuned-")
    atexit.register(directory.cleanup)
    daemon = Daemon(directory.name).start()
    try:
        daemon.attune("tune", *tuning)
        daemon.stop()
    finally:
        daemon.process.kill()
    return daemon.data
