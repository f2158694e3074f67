"""A daemon of a script's own, from a bundle (deploy/bundle), and the client to ask it with."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
LONGEST_S = 3 * 3600  # a command of the client's: whole spaces are tuned


def tool(name):
    """The path of one of the CUDA toolkit's programs; empty where there is none."""
    beside = pathlib.Path("/usr/local/cuda/bin", name)
    return shutil.which(name) or (str(beside) if beside.exists() else "")


def environment(bundle):
    """For the bundle's programs alone: torch has libraries of its own."""
    libraries = f"{bundle}:/usr/local/cuda/lib64:" + os.environ.get("LD_LIBRARY_PATH", "")
    return {**os.environ, "LD_LIBRARY_PATH": libraries}


def import_client(bundle):
    """The package attune: of BUNDLE/site, else installed, else built in the source tree."""
    sys.path.insert(0, str(bundle / "site"))
    sys.path.append(str(ROOT / "client/python"))
    import attune

    return attune


def ended(command, bundle, limit_s):
    """How one of the bundle's programs ended; ends the script where it did not within `limit_s`."""
    command = [str(part) for part in command]
    try:
        return subprocess.run(command, capture_output=True, text=True, env=environment(bundle), timeout=limit_s)
    except subprocess.TimeoutExpired:
        sys.exit(f"{' '.join(command)} did not end within {limit_s} s")


class Daemon:
    """`directory` gets the socket, the log and, unless `data` says where, the database. Ends with the `with` block."""

    def __init__(self, bundle, directory, kernels, flags=(), data=None):
        self.bundle = bundle
        self.data = data or directory / "data"
        self.address = f"unix:{directory}/attuned.sock"
        log = directory / "attuned.log"
        self.log = open(log, "a")
        begun = log.stat().st_size
        self.process = subprocess.Popen(
            [
                bundle / "attuned",
                f"--listen={self.address}",
                f"--data_dir={self.data}",
                f"--lock_dir={directory}/locks",
                f"--worker={bundle}/attune-worker",
                "--kernels_dir=" + ",".join(str(path) for path in kernels),
                *flags,
            ],
            stderr=self.log,
            env=environment(bundle),
        )
        # With a known data directory it answers before it has probed its host, and takes work only then.
        end = time.monotonic() + 60
        while " info serving " not in log.read_text()[begun:]:
            if self.process.poll() is not None or time.monotonic() > end:
                self.process.kill()
                self.process.wait()
                sys.exit(f"the daemon did not start:\n{log.read_text()}")
            time.sleep(0.05)

    def attune(self, *arguments, check=True, limit_s=LONGEST_S):
        command = [self.bundle / "attune", "--server", self.address, "--format=json", *arguments]
        result = ended(command, self.bundle, limit_s)
        if result.returncode != 0:
            message = f"attune {' '.join(arguments)} ended with {result.returncode}: {result.stderr[-2000:]}"
            if check:
                sys.exit(message)
            print(message, flush=True)
        return [json.loads(line) for line in result.stdout.splitlines()]

    def artifact(self, sha256):
        """The file of compiled code (docs/store.md)."""
        return self.data / "artifacts" / sha256[:2] / sha256

    def stop(self, limit_s=60):
        self.process.terminate()
        try:
            self.process.wait(limit_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            sys.exit(f"the daemon did not stop within {limit_s} s")

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.stop()
