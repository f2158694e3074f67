"""attune dashboard in front of a real daemon: its answers, a daemon that is killed and back, its end by a signal."""

import json
import signal
import unittest
import urllib.error
import urllib.request

from harness import DaemonTest, wait_until

PROBLEM = "b1.h1.q64.d64.f16"
# Each that a store with nothing in it answers.
RESOURCES = {
    "baselines": "",
    "best": f"problem={PROBLEM}",
    "compare": "from.end_time=2026-11-01T00:00:00Z&to.device_id=opencl:0",
    "devices": "",
    "families": "",
    "incumbents": f"problem={PROBLEM}&history=true",
    "misses": "page_size=10",
    "operations": "view=OPERATION_VIEW_BASIC&kind=JOB_KIND_SWEEP",
    "retimings": f"problem={PROBLEM}&spans=60",
    "submissions": "",
    "trends": "points=30&policy=POLICY_HOT",
    "trials": f"filter.problem={PROBLEM}&view=TRIAL_VIEW_BASIC&order=ORDER_FASTEST",
}


class DashboardTest(DaemonTest):
    def dashboard(self, daemon):
        """The process, and the URL that it prints."""
        process = daemon.popen("dashboard", "--listen=127.0.0.1:0", "--format=json")
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        line = process.stdout.readline()
        return process, json.loads(line)["url"]

    def ask(self, url):
        """The status and the answer."""
        try:
            with urllib.request.urlopen(url) as response:
                return response.status, json.load(response)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)

    def test_a_daemon_that_is_killed_is_seen_and_seen_again(self):
        daemon = self.daemon()
        process, url = self.dashboard(daemon)
        for resource, query in RESOURCES.items():
            status, answer = self.ask(f"{url}api/{resource}?{query}")
            self.assertEqual(status, 200, (resource, answer))
        for path in ("explain?problem=" + PROBLEM, "operation?name=operations/1", "trial?name=trials/1"):
            status, answer = self.ask(f"{url}api/{path}")
            self.assertEqual((status, answer["error"]["code"]), (404, "NOT_FOUND"), path)
        # What the server refuses is the caller's mistake here, too.
        status, answer = self.ask(f"{url}api/trends?points=1000000")
        self.assertEqual((status, answer["error"]["code"]), (400, "INVALID_ARGUMENT"))
        self.assertIn("points", answer["error"]["message"])

        status = self.ask(f"{url}api/status")[1]
        self.assertEqual((status["reachable"], status["server"], status["error"]), (True, daemon.address, None))
        self.assertTrue(status["caller"]["principal"].startswith("uid:"))
        daemon.kill()
        wait_until("503", lambda: self.ask(f"{url}api/trends")[0] == 503)
        wait_until("unreachable", lambda: not self.ask(f"{url}api/status")[1]["reachable"])
        daemon.start()
        wait_until("200", lambda: self.ask(f"{url}api/trends")[0] == 200)
        wait_until("reachable", lambda: self.ask(f"{url}api/status")[1]["reachable"])

        second = daemon.popen("dashboard", "--listen", url.removeprefix("http://").rstrip("/"))
        self.assertIn("Address already in use", second.communicate()[1])
        self.assertEqual(second.returncode, 1)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(60), 0)
        process, _ = self.dashboard(daemon)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(60), 0)
        daemon.stop()


if __name__ == "__main__":
    unittest.main()
