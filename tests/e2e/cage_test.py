"""Kernels that reach from their worker for what is not theirs, and sources that name other people's files: each is
refused or gets its verdict, nothing of it survives, and no other variant's result changes."""

import ctypes
import datetime
import os
import pathlib
import re
import shutil
import unittest

from harness import ATTUNED, BACK_WITHIN, KERNELS, TEST_FAMILIES, DaemonTest

PROBLEM = "b1.h1.q16.d16.f16"
FAMILY = "reaches_out_opencl"
WORKER = ATTUNED.with_name("attune-worker")

# Everything else is refused: such a kernel is as right as the honest one.
VERDICTS = {11: "CRASHED", 12: "CRASHED"}
ATTACKS = range(17)
FOOTPRINTS = [pathlib.Path(folder) / "attune-a-kernel-was-here" for folder in ("/tmp", "/dev/shm", "/var/tmp", ".")]

WHEN = re.compile(r"^(\S+Z) \w+ (worker lost|worker started) worker=\"device opencl:0\"", re.MULTILINE)


LANDLOCK_CREATE_RULESET = 444


def has_landlock():
    return ctypes.CDLL(None).syscall(LANDLOCK_CREATE_RULESET, None, 0, 1) > 0


def processes_of(pid):
    """The pids of its children and theirs."""
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # ended meanwhile
        if int(fields[1]) == pid:
            child = int(stat.parent.name)
            found += [child, *processes_of(child)]
    return found


@unittest.skipUnless(has_landlock(), "this kernel has no Landlock")
class CageTest(DaemonTest):
    def families(self, *names):
        directory = self.directory / "families"
        for name in ("common", *names):
            shutil.copytree(TEST_FAMILIES / name, directory / name)
        if FAMILY in names:
            source = directory / FAMILY / "attention.cl"
            places = {
                "LOCKS": self.directory / "locks",
                "DATA": self.directory / "data",
                "SOURCE": source,
                "WORKER": WORKER,
            }
            defines = "".join(f'#define {name} "{path}"\n' for name, path in places.items())
            source.write_text(defines + source.read_text())
        return directory

    def start(self, *names):
        for path in FOOTPRINTS:
            path.unlink(missing_ok=True)
        # One compile worker hands the variants on in the order of the manifests.
        flags = ["--compile_workers=1", "--trial_timeout=60s"]
        return self.daemon(kernels=[KERNELS, self.families(*names)], flags=flags)

    def test_what_a_kernel_reaches_for_is_refused_and_harms_nobody(self):
        daemon = self.start(FAMILY)
        pid = daemon.process.pid
        daemon.attune("tune", PROBLEM, "--family", FAMILY, check=False)
        trials = {t["parameters"]["ATTACK"]: t for t in daemon.trials(PROBLEM)}
        for attack in ATTACKS:
            trial = trials[attack]
            self.assertEqual(trial["verdict"], VERDICTS.get(attack, "OK"), f"{trial}\n{daemon.log}")
            if trial["verdict"] == "OK":
                self.assertGreater(trial["latency_ms"], 1e-4, trial)  # nobody's forged time
        self.assertEqual(daemon.process.poll(), None)
        self.assertEqual(daemon.process.pid, pid)
        self.assertEqual([path for path in FOOTPRINTS if path.exists()], [])
        self.assertEqual([path for path in (self.directory / "locks").iterdir() if path.is_dir()], [])
        self.assertEqual(list((daemon.data / "artifacts").rglob("planted")), [])
        # Workers have no children of their own, and one of a device is all there is.
        commands = {p: pathlib.Path(f"/proc/{p}/cmdline").read_bytes().split(b"\0") for p in processes_of(pid)}
        roles = {word: p for p, command in commands.items() for word in command if word.startswith(b"--role=")}
        self.assertEqual((sorted(roles), len(commands)), ([b"--role=compile", b"--role=device"], 2), commands)
        # Compilers give way to who times and who answers.
        nice = os.getpriority(os.PRIO_PROCESS, pid)
        of_roles = {role: os.getpriority(os.PRIO_PROCESS, p) for role, p in roles.items()}
        self.assertEqual(of_roles, {b"--role=compile": min(nice + 10, 19), b"--role=device": nice})
        # What a kernel prints is told as its worker's, and not for ever.
        forged = [line for line in daemon.log.splitlines() if "forged" in line]
        self.assertTrue(all("worker output" in line for line in forged), forged[:3])
        self.assertLess(len(forged), 1000)
        daemon.stop()
        self.assertEqual(daemon.process.returncode, 0)

    def test_a_worker_that_a_kernel_took_down_is_soon_back(self):
        daemon = self.start(FAMILY)
        daemon.attune("tune", PROBLEM, "--family", FAMILY, check=False)
        events = [(datetime.datetime.fromisoformat(when.rstrip("Z")), what) for when, what in WHEN.findall(daemon.log)]
        lost = [i for i, (_, what) in enumerate(events) if what == "worker lost"]
        self.assertEqual(len(lost), len(VERDICTS), daemon.log)
        for i in lost:
            self.assertEqual(events[i + 1][1], "worker started", daemon.log)
            self.assertLess((events[i + 1][0] - events[i][0]).total_seconds(), BACK_WITHIN)
        daemon.stop()

    def test_a_source_that_names_another_file_does_not_compile_and_brings_no_word_of_it(self):
        secret = self.directory / "secret.h"
        secret.write_text("somebody_elses_word\n")
        families = self.directory / "families"
        # What the manifest's loader sees itself it refuses at start: `#include "..."` at a line's beginning.
        for bad in (f"#include <{secret}>", f'%:include "{secret}"'):
            shutil.rmtree(families, ignore_errors=True)
            self.families("compile_error_opencl")
            source = families / "compile_error_opencl/attention.cl"
            source.write_text(f"#if BAD\n{bad}\n#endif\n" + source.read_text().replace("#if BAD", "#if 0"))
            daemon = self.daemon(kernels=[KERNELS, families], flags=["--trial_timeout=60s"])
            daemon.attune("tune", PROBLEM, "--family", "compile_error_opencl", check=False)
            trials = {t["parameters"]["BAD"]: t for t in daemon.trials(PROBLEM)}
            self.assertEqual(trials[0]["verdict"], "OK", daemon.log)
            self.assertEqual(trials[1]["verdict"], "COMPILE_ERROR", f"{bad}: {trials[1]}\n{daemon.log}")
            self.assertNotIn("somebody_elses_word", str(trials[1]) + daemon.log)
            daemon.stop()
            for artifact in (daemon.data / "artifacts").rglob("*"):
                self.assertFalse(artifact.is_file() and b"somebody_elses_word" in artifact.read_bytes(), artifact)
            shutil.rmtree(daemon.data)

    @unittest.skipIf(os.geteuid() != 0, "only root can be another user")
    def test_another_user_is_as_caged(self):
        os.chmod(self.directory, 0o777)
        daemon = self.daemon(kernels=[KERNELS, self.families(FAMILY)], flags=["--compile_workers=1"], start=False)
        daemon.user = 65534
        daemon.start()
        daemon.attune("tune", PROBLEM, "--family", FAMILY, check=False)
        verdicts = {t["parameters"]["ATTACK"]: t["verdict"] for t in daemon.trials(PROBLEM)}
        self.assertEqual(verdicts, {attack: VERDICTS.get(attack, "OK") for attack in ATTACKS}, daemon.log)
        daemon.stop()


if __name__ == "__main__":
    unittest.main()
