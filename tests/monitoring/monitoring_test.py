"""deploy/monitoring with the real Prometheus: rules, alerts, the dashboard and the example of a configuration."""

import contextlib
import json
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest
import urllib.parse
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))
from harness import PATIENCE, Daemon, wait_until  # noqa: E402

MONITORING = ROOT / "deploy/monitoring"
# Functions, aggregations, keywords and label names are no metrics; what is left of an expression are.
METRIC = re.compile(r"\b((?:attune|grpc|process|up|exposer)[a-z0-9_:]*)\b")
# Prometheus' own, and those that prometheus.yml gives.
OTHER_METRICS = {"up"}
OTHER_LABELS = {"instance", "job", "le", "alertname"}


def promtool(*arguments):
    return subprocess.run(["promtool", *map(str, arguments)], capture_output=True, text=True, timeout=PATIENCE)


def documented():
    """Each metric's labels."""
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| ([^|]*)\|", (ROOT / "docs/metrics.md").read_text(), re.MULTILINE)
    metrics = {}
    for name, kind, labels in rows:
        named = set(re.findall(r"`(\w+)`", labels))
        suffixes = ("_bucket", "_sum", "_count") if kind == "histogram" else ("",)
        metrics |= {name + suffix: named for suffix in suffixes}
    return metrics


def recorded():
    return re.findall(r"- record: (\S+)", (MONITORING / "rules.yml").read_text())


def dashboard():
    """(panel's title, expression) of every target, with the variables that Grafana fills in filled in."""
    panels = json.loads((MONITORING / "grafana.json").read_text())["panels"]
    return [
        (panel["title"], target["expr"].replace("$instance", ".*"))
        for panel in panels
        for target in panel.get("targets", [])
    ]


def rule_expressions():
    """An expression stands behind "expr:", or on the lines below it that are indented further."""
    expressions, deeper = [], None
    for line in ((MONITORING / "rules.yml").read_text() + (MONITORING / "alerts.yml").read_text()).splitlines():
        indent = len(line) - len(line.lstrip())
        if found := re.fullmatch(r" +expr: (.*)", line):
            expressions.append(found[1].strip("|"))
            deeper = indent if found[1] == "|" else None
        elif deeper is not None and indent > deeper:
            expressions[-1] += line
        else:
            deeper = None
    return expressions


class FilesTest(unittest.TestCase):
    def test_promtool_accepts_configuration_and_rules(self):
        # It looks for the rules beside the configuration, as an installation has them.
        checked = promtool("check", "config", MONITORING / "prometheus.yml")
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
        self.assertIn("2 rule files found", checked.stdout)

    def test_each_alert_fires_where_it_must_and_only_there(self):
        files = sorted((ROOT / "tests/monitoring").glob("*_test.yml"))
        tested = promtool("test", "rules", *files)
        self.assertEqual(tested.returncode, 0, tested.stdout + tested.stderr)
        alerts = re.findall(r"- alert: (\w+)", (MONITORING / "alerts.yml").read_text())
        in_tests = "".join(file.read_text() for file in files)
        for alert in alerts:
            self.assertRegex(in_tests, rf"alertname: {alert}\n +exp_alerts:\n", f"nothing makes {alert} fire")

    def test_each_alert_has_its_place_in_the_runbook(self):
        runbook = (ROOT / "docs/runbook.md").read_text()
        anchors = {title.lower() for title in re.findall(r"^### (\w+)$", runbook, re.MULTILINE)}
        text = (MONITORING / "alerts.yml").read_text()
        for alert, link in re.findall(r"- alert: (\w+)\n.*?runbook: (\S+)", text, re.DOTALL):
            self.assertEqual(link, f"docs/runbook.md#{alert.lower()}")
            self.assertIn(alert.lower(), anchors)

    def test_every_expression_names_metrics_and_labels_that_there_are(self):
        metrics, rules = documented(), recorded()
        expressions = dashboard() + [("a rule", expression) for expression in rule_expressions()]
        self.assertGreater(len(expressions), 60)
        named = set()
        for title, expression in expressions:
            bare = re.sub(r'"[^"]*"', '""', expression)
            without_labels = re.sub(r"\{[^}]*\}", "", re.sub(r"(by|on)\s*\([^)]*\)", "", bare))
            used = set(METRIC.findall(without_labels))
            self.assertTrue(used, f"{title}: {expression}")
            named |= used
            for name in used:
                self.assertTrue(name in metrics or name in rules or name in OTHER_METRICS, f"{title}: {name}")
            for name, selector in re.findall(r"\b([a-z_:0-9]+)\{([^}]*)\}", bare):
                for label in re.findall(r"(\w+)\s*[=!]", selector):
                    known = metrics.get(name, OTHER_LABELS) | OTHER_LABELS
                    self.assertIn(label, known, f"{title}: {name}")
        self.assertEqual(set(rules) - named, set(), "recorded for nobody")


@contextlib.contextmanager
def prometheus(target):
    """Its address, scraping `target` every second."""
    with tempfile.TemporaryDirectory(prefix="attune-prometheus-") as folder:
        for name in ("rules.yml", "alerts.yml"):
            shutil.copy(MONITORING / name, folder)
        config = (MONITORING / "prometheus.yml").read_text()
        config = config.replace("127.0.0.1:9464", target).replace("15s", "1s")
        (pathlib.Path(folder) / "prometheus.yml").write_text(config)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{free.getsockname()[1]}"
        command = ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
        process = subprocess.Popen(
            [*command, f"--web.listen-address={address}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            yield address
        finally:
            process.terminate()
            process.wait(PATIENCE)


def get(address, path, **query):
    try:
        with urllib.request.urlopen(f"http://{address}{path}?{urllib.parse.urlencode(query)}", timeout=30) as answer:
            return json.load(answer)["data"]
    except OSError as error:
        if getattr(error, "code", 0) == 400:
            raise AssertionError(error.read().decode()) from error
        return None


class LiveTest(unittest.TestCase):
    def test_prometheus_scrapes_a_daemon_and_answers_what_the_dashboard_asks(self):
        with tempfile.TemporaryDirectory(prefix="attune-monitoring-") as folder:
            daemon = Daemon(folder, flags=["--metrics_listen=0"]).start()
            self.addCleanup(lambda: daemon.process.poll() is None and daemon.kill())
            target = re.search(r"metrics exposed address=(\S+)", daemon.log).group(1)
            with prometheus(target) as address:

                def value(expression):
                    found = get(address, "/api/v1/query", query=expression)
                    return float(found["result"][0]["value"][1]) if found and found["result"] else None

                wait_until("a scrape", lambda: value("attune_store_writable") == 1)
                for _ in range(3):
                    daemon.attune("best", "b1.h1.q64.d64.f16", check=False)
                wait_until("the counted calls", lambda: value("sum(attune_answers_total)") == 3)
                wait_until("a recorded rule", lambda: value("attune:store_free:ratio") is not None)
                for title, expression in dashboard():
                    self.assertIsNotNone(get(address, "/api/v1/query", query=expression), title)
                rules = [rule for group in get(address, "/api/v1/rules")["groups"] for rule in group["rules"]]
                self.assertEqual({rule["health"] for rule in rules}, {"ok"}, rules)
                firing = [rule["name"] for rule in rules if rule.get("alerts") and rule["state"] == "firing"]
                self.assertEqual(firing, [], "of a healthy daemon")
                daemon.stop()
                wait_until("that it is down", lambda: value('up{job="attune"}') == 0)
                wait_until("the alert", lambda: self.pending(address, "AttuneDown"))

    @staticmethod
    def pending(address, alert):
        alerts = get(address, "/api/v1/alerts")
        return alerts is not None and any(one["labels"]["alertname"] == alert for one in alerts["alerts"])


if __name__ == "__main__":
    unittest.main()
