"""Metrics: what a real daemon exposes, what a tuning moves in it, and whether that is what docs/metrics.md says."""

import re
import shutil
import subprocess
import threading
import unittest
import urllib.error
import urllib.request

from harness import KERNELS, PATIENCE, ROOT, TEST_FAMILIES, DaemonTest, wait_until

PROBLEM = "b1.h1.q64.d64.f16"
TWO_TRIALS = ("--strategy=random", "--max-trials=2", "--seed=7")
SAMPLE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)")
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\]|\\.)*)"')

# What the document has and a daemon without a GPU, sweeps and backups has not.
ONLY_LATER = {
    "attune_sweep_problems",
    "attune_sweep_last_success_timestamp_seconds",
    "attune_device_sm_clock_hertz",
    "attune_device_power_watts",
    "attune_device_temperature_celsius",
    "attune_device_throttled",
    "attune_backup_last_timestamp_seconds",
    "attune_backup_last_bytes",
}


def documented():
    return dict(re.findall(r"^\| `(\w+)` \| (\w+) ", (ROOT / "docs/metrics.md").read_text(), re.MULTILINE))


class Scrape:
    """One answer of /metrics."""

    def __init__(self, text):
        self.text = text
        self.types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))
        self.samples = []
        for line in text.splitlines():
            if not line.startswith("#"):
                name, labels, value = SAMPLE.fullmatch(line).groups()
                self.samples.append((name, dict(LABEL.findall(labels or "")), float(value)))

    def sum(self, name, **labels):
        """Of all series of the name that have these labels; 0 where there is none."""
        return sum(value for one, has, value in self.samples if one == name and labels.items() <= has.items())


class MetricsTest(DaemonTest):
    def start(self, *flags, kernels=(KERNELS,)):
        daemon = self.daemon(flags=["--metrics_listen=0", *flags], kernels=kernels)
        self.url = "http://" + re.search(r"metrics exposed address=(\S+)", daemon.log).group(1)
        return daemon

    def scrape(self):
        with urllib.request.urlopen(self.url + "/metrics", timeout=PATIENCE) as answer:
            return Scrape(answer.read().decode())

    def test_a_tuning_moves_what_it_must(self):
        daemon = self.start()
        before = self.scrape()
        daemon.attune("tune", PROBLEM, *TWO_TRIALS)
        for _ in range(3):
            daemon.attune("best", PROBLEM)
        daemon.attune("best", "b1.h1.q1.kv512.d64.f16")
        daemon.attune("watch", "operations/none", check=False)
        after = self.scrape()

        def moved(name, **labels):
            return after.sum(name, **labels) - before.sum(name, **labels)

        self.assertEqual(moved("attune_jobs_total", kind="tune", state="succeeded"), 1)
        self.assertEqual(moved("attune_jobs_total"), 1)
        self.assertEqual(moved("attune_trials_total", verdict="ok", family="attention_opencl"), 2)
        self.assertEqual(moved("attune_trials_total"), 2)
        self.assertEqual(moved("attune_answers_total", provenance="exact"), 3)
        self.assertEqual(moved("attune_answers_total"), 4, "the last three from kept bytes or not, each once")
        self.assertEqual(moved("attune_misses_total", dtype="f16", mask="none", phase="decode"), 1)
        self.assertEqual(moved("attune_misses_total"), 1)
        self.assertEqual(moved("grpc_server_handled_total", grpc_method="GetBest", grpc_code="OK"), 4)
        self.assertEqual(moved("grpc_server_started_total", grpc_method="GetBest"), 4)
        self.assertEqual(moved("grpc_server_handling_seconds_count", grpc_method="GetBest"), 4)
        self.assertGreater(moved("grpc_server_handling_seconds_sum", grpc_method="GetBest"), 0)
        self.assertEqual(moved("grpc_server_handled_total", grpc_method="Tune", grpc_code="OK"), 1)
        self.assertEqual(moved("grpc_server_handled_total", grpc_method="WatchOperation", grpc_code="OK"), 1)
        self.assertEqual(moved("grpc_server_handled_total", grpc_code="NotFound"), 1)
        self.assertGreaterEqual(moved("attune_compiles_total", verdict="ok"), 2)
        self.assertEqual(moved("attune_compile_seconds_count"), moved("attune_compiles_total", verdict="ok"))
        self.assertEqual(moved("attune_trial_check_seconds_count", device="opencl:0"), 2)
        self.assertEqual(moved("attune_trial_timing_seconds_count", device="opencl:0"), 2)
        self.assertGreaterEqual(moved("attune_device_timings_total", device="opencl:0"), 2)
        for call in ("prepare", "trial", "play_off"):
            self.assertGreater(moved("attune_device_busy_seconds_total", call=call), 0, call)
        self.assertEqual(moved("attune_job_seconds_count", kind="tune"), 1)
        self.assertEqual(moved("attune_job_wait_seconds_count", priority="interactive"), 1)
        self.assertGreater(moved("attune_store_writes_total"), 2)
        self.assertGreater(moved("attune_store_commit_seconds_count"), 0)
        self.assertEqual(moved("attune_store_write_failures_total"), 0)
        self.assertEqual(moved("attune_workers_started_total", role="device"), 1)
        self.assertEqual(after.sum("attune_store_writable"), 1)
        self.assertGreater(after.sum("attune_store_database_bytes"), 4096)
        self.assertEqual(after.sum("attune_jobs_waiting") + after.sum("attune_jobs_running"), 0)
        self.check_document(after)
        self.check_lint(after)

    def check_document(self, scrape):
        document = documented()
        exposed = {name: kind for name, kind in scrape.types.items() if not name.startswith("exposer_")}
        own = {name: kind for name, kind in document.items() if not name.startswith("exposer_")}
        self.assertEqual(exposed, {name: kind for name, kind in own.items() if name not in ONLY_LATER})
        for name in scrape.types.keys() - exposed.keys():
            self.assertEqual(document.get(name), scrape.types[name])

    def check_lint(self, scrape):
        """Where promtool is: it names what goes against Prometheus' conventions."""
        if shutil.which("promtool") is None:
            self.skipTest("no promtool")
        text = re.sub(r"^(# \w+ )?exposer_.*\n", "", scrape.text, flags=re.MULTILINE)  # those of prometheus-cpp itself
        lint = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True)
        self.assertEqual((lint.returncode, lint.stdout + lint.stderr), (0, ""))

    def test_what_takes_workers_down_is_counted_with_the_reason(self):
        daemon = self.start(kernels=(KERNELS, TEST_FAMILIES))
        daemon.attune("evaluate", PROBLEM, "crash_opencl:BAD=1", check=False)
        scrape = self.scrape()
        self.assertGreater(scrape.sum("attune_trials_total", family="crash_opencl", verdict="crashed"), 0)
        self.assertGreater(scrape.sum("attune_workers_lost_total", role="device", reason="fault"), 0)
        self.assertEqual(scrape.sum("attune_workers_lost_total", reason="killed"), 0)

    def test_a_job_that_waits_is_seen_while_it_does(self):
        daemon = self.start("--trial_timeout=10m", kernels=(KERNELS, TEST_FAMILIES))
        jobs = [
            daemon.json("evaluate", f"b1.h1.q{length}.d64.f16", "hang_opencl:BAD=1", "--detach")[0]["operation"]
            for length in (16, 32, 48, 64)
        ]
        # Two begin on a device, the others wait for a thread.
        wait_until("jobs that wait", lambda: self.scrape().sum("attune_jobs_waiting", priority="interactive") == 2)
        self.assertEqual(self.scrape().sum("attune_jobs_running", priority="interactive"), 2)
        for name in jobs:
            daemon.attune("cancel", name)
        wait_until("their end", lambda: self.scrape().sum("attune_jobs_total", state="cancelled") == 4)

    def test_scrapes_go_on_while_the_daemon_drains_and_starts_again(self):
        daemon = self.start()
        over = threading.Event()
        seen = []

        def scrape():
            while not over.is_set():
                try:
                    seen.append(self.scrape())
                except (urllib.error.URLError, ConnectionError):
                    seen.append(None)
                    over.wait(0.01)

        scraper = threading.Thread(target=scrape, daemon=True)
        scraper.start()
        self.addCleanup(over.set)
        for _ in range(3):
            daemon.attune("best", PROBLEM)
            daemon.stop()
            daemon.start()
            self.url = "http://" + re.search(r"metrics exposed address=(\S+)", daemon.log).group(1)
            count = len(seen)
            wait_until("an answer", lambda count=count: any(seen[count:]))

    def test_nothing_else_is_served_and_nothing_without_the_flag(self):
        daemon = self.start()
        for path in ("/", "/metrics/../../etc/passwd", "/%2e%2e/etc/passwd"):
            with self.assertRaises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(self.url + path, timeout=PATIENCE)
            self.assertIn(refused.exception.code, (400, 404))
        daemon.stop()
        quiet = self.daemon()
        self.assertNotIn("metrics exposed", quiet.log)


if __name__ == "__main__":
    unittest.main()
