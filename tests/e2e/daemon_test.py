"""The daemon as a service: flags, --check, signals, connections, its workers' output and its log."""

import contextlib
import itertools
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import stat
import subprocess
import unittest
import unittest.mock

from harness import ATTUNED, KERNELS, PATIENCE, ROOT, TEST_FAMILIES, Daemon, DaemonTest, run_attune, wait_until

PROBLEM = "b1.h1.q64.d64.f16"
TWO_TRIALS = ("--strategy=random", "--max-trials=2", "--seed=7")

LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (debug|info|warning|error) [ -~]+\n")


# A client's preface and its empty settings: a connection that stays open without a call.
HTTP2_HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"


def run_attuned(*flags):
    return subprocess.run([str(ATTUNED), *flags], capture_output=True, text=True, timeout=PATIENCE)


def logged(daemon, event):
    """The line of the log about `event`, which is there at the latest a moment after its effect is seen."""
    wait_until(event, lambda: f" {event} " in daemon.log)
    return next(line for line in daemon.log.splitlines() if f" {event} " in line)


class FlagsTest(DaemonTest):
    def test_every_bad_flag_is_named_with_its_value_and_what_is_allowed(self):
        result = run_attuned(
            "--listen=foo,localhost:99999,localhost,:7499,unix:/" + 120 * "x",
            "--compile_workers=-3",
            "--trial_timeout=-3s",
            "--compile_timeout=0",
            "--emulate=l5",
            "--log_format=xml",
        )
        self.assertEqual(result.returncode, 2)
        self.assertEqual(
            [line.removeprefix("attuned: ")[:70] for line in result.stderr.splitlines()],
            [
                line[:70]
                for line in (
                    "--listen: 'foo' is not host:port or unix:/path",
                    "--listen: 'localhost:99999' has a port that is not one of 0 to 65535",
                    "--listen: 'localhost' is not host:port or unix:/path",
                    "--listen: ':7499' is not host:port or unix:/path",
                    "--listen: 'unix:/" + 58 * "x",
                    "--compile_workers is -3; allowed: 0 (one a core) to 1024",
                    "--compile_timeout is 0; allowed: 100ms to 1h",
                    "--trial_timeout is -3s; allowed: 100ms to 1h",
                    "--emulate is 'l5'; allowed: a100, h100, h200, l4, rtx4090",
                    "--log_format is 'xml'; allowed: text, json",
                )
            ],
        )

    def test_help_says_its_name_once(self):
        first = run_attuned("--help").stdout.splitlines()[0]
        self.assertEqual(first.count("attuned"), 1, first)

    def test_a_directory_without_families_is_worth_a_warning(self):
        empty = self.directory / "empty"
        empty.mkdir()
        daemon = self.daemon(kernels=[empty])
        self.assertIn("warning no kernel family: nothing can be tuned", daemon.log)
        self.assertIn("families=0", daemon.log)
        daemon.stop()


class EnvironmentTest(DaemonTest):
    """What a container or a service manager says by variables."""

    def test_variables_stand_for_flags_and_the_command_line_wins(self):
        daemon = Daemon(self.directory)
        elsewhere = self.directory / "elsewhere"
        daemon.start({"ATTUNED_LOG_FORMAT": "json", "ATTUNED_DATA_DIR": str(elsewhere)}, until='"serving"')
        daemon.stop()
        self.assertIn(str(daemon.data), daemon.log)
        self.assertFalse(elsewhere.exists())
        result = subprocess.run(
            [ATTUNED], env={**os.environ, "ATTUNED_DATA": "/srv"}, capture_output=True, text=True, timeout=PATIENCE
        )
        self.assertEqual(result.returncode, 2)
        self.assertIn("'ATTUNED_DATA', which stands for no flag", result.stderr)

    def test_a_service_manager_is_told_of_start_life_and_end(self):
        path = self.directory / "notify"
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(str(path))
            manager.settimeout(PATIENCE)
            daemon = Daemon(self.directory).start({"NOTIFY_SOCKET": str(path), "WATCHDOG_USEC": "200000"})
            told = []
            while "READY=1\nSTATUS=serving" not in told or told.count("WATCHDOG=1") < 3:
                told.append(manager.recv(1024).decode())
            daemon.stop()
            while not told[-1].startswith("STOPPING=1"):
                told.append(manager.recv(1024).decode())
        self.assertEqual(told[-1], "STOPPING=1\nSTATUS=draining on SIGTERM")


class CheckTest(DaemonTest):
    def test_what_is_good_passes_without_a_daemon(self):
        daemon = self.daemon(start=False)
        result = subprocess.run([*daemon.command(), "--check"], capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertRegex(
            result.stdout, r"flags +ok\nmanifests +ok: \d+ good kernel families in .*\nstore +ok: .*to be made\n"
        )
        self.assertFalse(daemon.data.exists())

    def test_every_bad_manifest_is_named(self):
        kernels = self.directory / "kernels"
        for name, text in (("a", "nonsense: 1"), ("b", 'name: "b" backend: BACKEND_CUDA')):
            (kernels / name).mkdir(parents=True)
            (kernels / name / "family.textproto").write_text(text)
        result = run_attuned("--check=manifests", f"--kernels_dir={kernels}")
        self.assertEqual(result.returncode, 1)
        for mistake in ("a/family.textproto: line 1", "b/family.textproto: operation", "b/family.textproto: sources"):
            self.assertIn(mistake, result.stdout)
        refused = run_attuned(f"--kernels_dir={kernels}", f"--data_dir={self.directory}/data", "--listen=localhost:0")
        self.assertEqual(refused.returncode, 1)
        self.assertRegex(refused.stderr, r"a/family\.textproto.*and \d+ more: attuned --check=manifests names them")

    def test_every_flag_that_cannot_work_is_named(self):
        locks = self.directory / "everybodys"
        locks.mkdir()
        locks.chmod(0o1777)
        flags = ("--data_dir=/proc/attune", f"--lock_dir={locks}", "--devices=foo:0", f"--kernels_dir={KERNELS}")
        result = run_attuned("--check", *flags, "--drain_timeout=abc", "--bogus=1")
        self.assertEqual(result.returncode, 1)
        for mistake in ("drain_timeout", "bogus"):
            self.assertIn(mistake, result.stderr)
        for mistake in (
            f"--lock_dir '{locks}' may be written to by every user",
            "--devices has 'foo:0'; this host has opencl:0",
            "cannot make directory '/proc/attune'",
        ):
            self.assertIn(mistake, result.stdout)

    def test_a_lock_directory_of_everybody_is_refused_at_the_start(self):
        locks = self.directory / "everybodys"
        locks.mkdir()
        locks.chmod(0o1777)
        result = run_attuned(f"--lock_dir={locks}", f"--data_dir={self.directory}/data", "--listen=localhost:0")
        self.assertEqual(result.returncode, 2)
        self.assertIn("may be written to by every user", result.stderr)
        self.assertFalse((self.directory / "data").exists())

    def test_a_store_in_use_is_left_alone_and_a_damaged_one_found(self):
        daemon = self.daemon()
        self.assertIn("in use by process", run_attuned("--check=store", f"--data_dir={daemon.data}").stdout)
        daemon.stop()
        self.assertIn("undamaged, 0 trials", run_attuned("--check=store", f"--data_dir={daemon.data}").stdout)
        (daemon.data / "attune.db").write_bytes(b"x" * 8192)
        result = run_attuned("--check=store", f"--data_dir={daemon.data}")
        self.assertEqual(result.returncode, 1)
        self.assertIn("damaged or not a database", result.stdout)


class DeviceLockTest(DaemonTest):
    def test_nothing_is_compiled_for_a_device_that_another_daemon_holds(self):
        holder = self.daemon()
        holder.attune("tune", PROBLEM, *TWO_TRIALS)
        (self.directory / "other").mkdir()
        other = Daemon(self.directory / "other", flags=[f"--lock_dir={self.directory}/locks"])
        self.addCleanup(lambda: other.process and other.process.poll() is None and other.kill())
        other.start()
        refused = other.attune("tune", PROBLEM, *TWO_TRIALS, check=False)
        self.assertEqual(refused.returncode, 6)
        self.assertIn("is in use by process", refused.stderr)
        compiled = [path for path in (other.data / "artifacts").rglob("*") if path.is_file()]
        self.assertEqual(compiled, [])
        other.stop()
        holder.stop()


class SignalsTest(DaemonTest):
    def test_each_ending_signal_drains(self):
        for sent in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            daemon = self.daemon()
            daemon.process.send_signal(sent)
            self.assertEqual(daemon.process.wait(PATIENCE), 0)
            daemon._reader.join(PATIENCE)
            self.assertIn(f"info draining signal={sent.name}", daemon.log)
            self.assertTrue(daemon.log.endswith(" info stopped\n"), daemon.log)

    def test_a_trial_that_hangs_keeps_it_no_longer_than_the_drain(self):
        daemon = self.daemon([KERNELS, TEST_FAMILIES], ["--trial_timeout=1h", "--drain_timeout=1s"])
        evaluating = daemon.popen("--format=json", "evaluate", PROBLEM, "hang_opencl:BAD=1")
        wait_until("the job", lambda: daemon.json("jobs"))
        name = daemon.json("jobs")[0]["operation"]
        watching = daemon.popen("--format=json", "watch", name)
        # Compiled, and so on the device, for ever.
        self.assertTrue(any(json.loads(line).get("compiles_done") == 1 for line in watching.stdout))
        daemon.stop()  # with code 0: the drain's end has not had to be forced
        for client in (evaluating, watching):
            client.kill()  # it would wait for the next start
            client.communicate()
        self.assertIn(f"info job interrupted, goes on at the next start job={name}", daemon.log)
        daemon.start()
        self.assertIn(f"info job resumed job={name}", daemon.log)
        self.assertEqual(daemon.trials(PROBLEM), [])  # no verdict came of it
        daemon.kill()

    def test_a_cancel_does_not_wait_for_a_trial_that_hangs(self):
        daemon = self.daemon([KERNELS, TEST_FAMILIES], ["--trial_timeout=1h"])
        name = daemon.json("evaluate", PROBLEM, "hang_opencl:BAD=1", "--detach")[0]["operation"]
        watching = daemon.popen("--format=json", "watch", name)
        self.assertTrue(any(json.loads(line).get("compiles_done") == 1 for line in watching.stdout))
        daemon.attune("cancel", name)
        self.assertEqual(json.loads(watching.communicate(timeout=PATIENCE)[0].splitlines()[-1])["state"], "CANCELLED")
        self.assertEqual(daemon.trials(PROBLEM), [])  # no verdict came of it
        self.assertEqual(daemon.json("evaluate", PROBLEM, "hang_opencl:BAD=0")[-1]["decision"], "KEEP")
        daemon.stop()

    def test_while_it_starts_it_ends_at_once(self):
        worker = self.directory / "worker"
        worker.write_text("#!/bin/sh\nexec cat <&3 >/dev/null\n")  # takes all that it is told, and never answers
        worker.chmod(0o755)
        daemon = self.daemon(flags=[f"--worker={worker}"], start=False)
        daemon.start(until="worker started")
        daemon.stop()
        self.assertIn("stopped while starting signal=SIGTERM", daemon.log)


class ConnectionsTest(DaemonTest):
    def test_idle_connections_take_neither_the_stores_nor_the_workers_descriptors(self):
        daemon = Daemon(self.directory)
        daemon.flags.append(f"--listen={daemon.address},localhost:0")
        command = daemon.command()
        daemon.command = lambda: ["prlimit", "--nofile=400:400", *command]
        self.addCleanup(lambda: daemon.process and daemon.process.poll() is None and daemon.kill())
        daemon.start()
        tcp = re.search(r"info serving address=\S*localhost:(\d+)", daemon.log)[1]
        held = []
        self.addCleanup(lambda: [each.close() for each in held])

        def refused_with_some_more():
            for _ in range(50):
                held.append(socket.create_connection(("127.0.0.1", int(tcp)), timeout=PATIENCE))
                with contextlib.suppress(OSError):  # of one that is refused
                    held[-1].sendall(HTTP2_HELLO)
            return "connection refused, too many are open" in daemon.log

        wait_until("connections to be refused", refused_with_some_more)
        # Who is on this host is served, and the store and workers have what they need, while the others stay.
        name = daemon.json("tune", PROBLEM, *TWO_TRIALS, "--detach")[0]["operation"]
        wait_until("a worker", lambda: "worker started worker=compile" in daemon.log)
        daemon.attune("cancel", name)
        while held:
            held.pop().close()
        wait_until(
            "the network to be served again",
            lambda: run_attune("--server", f"localhost:{tcp}", "--timeout=2s", "jobs").returncode == 0,
        )
        daemon.stop()

    def test_silent_connections_end_by_themselves(self):
        daemon = self.daemon()
        with socket.socket(socket.AF_UNIX) as silent:
            silent.settimeout(PATIENCE)
            silent.connect(daemon.address.removeprefix("unix:"))
            while silent.recv(4096):
                pass  # HTTP/2's settings; then the end
        daemon.stop()

    def test_its_socket_is_its_owners_and_its_groups(self):
        daemon = self.daemon()
        mode = os.stat(daemon.address.removeprefix("unix:")).st_mode
        self.assertEqual(stat.S_IMODE(mode), 0o660)
        daemon.stop()
        self.assertFalse(os.path.exists(daemon.address.removeprefix("unix:")))


class MemoryTest(DaemonTest):
    def test_on_one_core_its_malloc_has_two_arenas(self):
        environment = unittest.mock.patch.dict(os.environ)
        environment.start()
        self.addCleanup(environment.stop)
        os.environ.pop("MALLOC_ARENA_MAX", None)
        cores = os.sched_getaffinity(0)
        self.addCleanup(os.sched_setaffinity, 0, cores)
        os.sched_setaffinity(0, {min(cores)})  # the daemon's, too
        glibcs = self.arenas({"MALLOC_ARENA_MAX": "64"})
        if glibcs == 0:
            self.skipTest("its malloc is not glibc's: a sanitizer's, or another one that was preloaded")
        self.assertGreater(glibcs, 1)
        self.assertEqual(self.arenas({}), 1)  # beside that of brk

    def arenas(self, environment):
        """How many beside that of brk a daemon has that has answered some calls: each is 64 MiB of addresses."""
        daemon = self.daemon(start=False)
        daemon.start(environment)
        for _ in range(5):
            daemon.attune("jobs")
        try:
            lines = pathlib.Path(f"/proc/{daemon.process.pid}/maps").read_text().splitlines()
        except PermissionError as error:
            self.skipTest(f"only root sees the daemon's memory: {error}")
        daemon.stop()
        areas = [(*(int(end, 16) for end in line.split()[0].split("-")), line.split()[1]) for line in lines]
        return sum(
            used[2] == "rw-p" and kept[2] == "---p" and used[1] == kept[0] and kept[1] - used[0] == 64 << 20
            for used, kept in itertools.pairwise(areas)
        )


class LogTest(DaemonTest):
    def test_jobs_promotions_roll_backs_and_lost_workers_are_told(self):
        daemon = self.daemon()
        name = daemon.json("tune", PROBLEM, *TWO_TRIALS, "--detach")[0]["operation"]
        daemon.attune("watch", name)
        for event in ("job queued", "job started"):
            self.assertIn(f'job={name} title="tune {PROBLEM} on opencl:0"', logged(daemon, f"info {event}"))
        self.assertRegex(
            logged(daemon, "info job ended"),
            rf"job={name} .* state=SUCCEEDED seconds=[\d.]+ .*trials=2 reused=0 verdicts=OK:2",
        )
        self.assertRegex(
            logged(daemon, "info promoted"),
            rf"problem={PROBLEM} device=opencl:0 policy=HOT variant=.* us=[\d.]+ why=.* job={name}",
        )

        workers = re.findall(r"worker started worker=\"device opencl:0\" pid=(\d+)", daemon.log)
        self.assertEqual(len(workers), 1)
        os.kill(int(workers[0]), signal.SIGKILL)
        self.assertIn(  # before anybody uses it
            f'worker="device opencl:0" pid={workers[0]} cause="killed by SIGKILL"',
            logged(daemon, "warning worker lost"),
        )
        daemon.attune("tune", PROBLEM, *TWO_TRIALS, "--retry-known")
        self.assertEqual(len(re.findall(r"worker started worker=\"device opencl:0\"", daemon.log)), 2)
        self.assertTrue(all(LINE.fullmatch(line) for line in daemon.log.splitlines(keepends=True)), daemon.log)
        daemon.stop()

    def test_its_level_and_format_are_what_the_flags_say(self):
        daemon = self.daemon(flags=["--log_format=json", "--log_level=debug"], start=False)
        daemon.start(until='"event":"serving"')
        daemon.attune("tune", PROBLEM, *TWO_TRIALS)
        daemon.stop()
        events = [json.loads(line) for line in daemon.log.splitlines()]
        self.assertEqual(len([event for event in events if event["event"] == "trial"]), 2)

    def test_a_workers_output_is_bounded_and_cannot_forge_lines(self):
        worker = self.directory / "worker"
        worker.write_text(
            "#!/bin/sh\n"
            'case "$*" in *--role=probe*)\n'
            "  yes '2026-01-01T00:00:00.000Z info promoted problem=forged' | head -n 50000 >&2\n"
            "  head -c 3000000 /dev/zero | tr '\\0' 'x' ;;\n"
            "esac\n"
            f'exec {ATTUNED.with_name("attune-worker")} "$@"\n'
        )
        worker.chmod(0o755)
        daemon = self.daemon(flags=[f"--worker={worker}"])
        daemon.stop()
        self.assertLess(len(daemon.log), 300_000)
        forged = [line for line in daemon.log.splitlines() if "forged" in line]
        self.assertTrue(forged)
        self.assertTrue(all(' warning worker output worker=probe line="' in line for line in forged))
        self.assertIn('log lines are left out repeated="worker output"', daemon.log)


@unittest.skipUnless(shutil.which("systemd-analyze"), "systemd-analyze is not installed")
class UnitTest(DaemonTest):
    def test_the_units_are_right(self):
        units = ROOT / "deploy/systemd"
        paths = []
        names = ("attuned.service", "attune-sweep.service", "attune-sweep.timer", "attune-notify.service")
        for name in (*names, "attune-dashboard.service"):
            text = (units / name).read_text().replace("/usr/bin/", f"{ATTUNED.parent}/")
            paths.append(str(self.directory / name))
            pathlib.Path(paths[-1]).write_text(text.replace("/usr/libexec/attune/", f"{units}/"))
        result = subprocess.run(["systemd-analyze", "verify", *paths], capture_output=True, text=True)
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_a_worker_that_takes_all_memory_is_not_the_services_end(self):
        unit = (ROOT / "deploy/systemd/attuned.service").read_text().splitlines()
        for line in (
            "Type=notify",
            "WatchdogSec=60",
            "OOMPolicy=continue",
            "Restart=always",
            "LimitNOFILE=65536",
            "IPAddressDeny=any",
        ):
            self.assertIn(line, unit)

    def test_it_ends_before_systemd_loses_patience(self):
        unit = (ROOT / "deploy/systemd/attuned.service").read_text()
        flags = (ROOT / "deploy/systemd/attuned.flags").read_text()
        self.assertNotIn("--drain_timeout", flags)  # else 15 s, and 5 s to close
        self.assertGreater(int(re.search(r"TimeoutStopSec=(\d+)", unit)[1]), 15 + 5)


if __name__ == "__main__":
    unittest.main()
