"""The dashboard's pure functions, in the browser that runs them; and its pages without a daemon."""

import unittest

from browser import Browser, Dashboard
from stored_year import ATTUNE


def night(number, median, driver="580.1", variant="attention_mma:BLOCK_M=64", source="a" * 64, card="GPU-0"):
    return {
        "finishTime": f"2026-01-{number:02}T02:00:00Z",
        "deviceUuid": card,
        "variant": variant,
        "timing": {"medianUs": median},
        "dependencies": {"driver": driver, "toolchain": "nvrtc 13.0", "sourceHash": source},
    }


def trend(problem, state, before, after, **more):
    return {
        "problemText": problem,
        "deviceClass": "c" * 64,
        "policy": "POLICY_HOT",
        "state": f"STATE_{state}",
        "served": {"medianUs": before},
        "reference": {"medianUs": before},
        "latest": {"medianUs": after},
        "latestTime": "2026-11-20T02:00:00Z",
        **more,
    }


class ModulesTest(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        dashboard = Dashboard(ATTUNE, "unix:/nonexistent/attuned.sock")
        cls.addClassCleanup(dashboard.stop)
        cls.browser = Browser(dashboard.url)
        cls.addClassCleanup(cls.browser.close)
        cls.browser.driver.get(dashboard.url + "#/health")

    def module(self, *arguments):
        return self.browser.module(*arguments)

    def test_without_a_daemon_the_page_says_so(self):
        self.browser.driver.get("about:blank")
        self.browser.driver.get(self.browser.url + "#/health")
        banner = self.browser.driver.execute_async_script(
            """const done = arguments[0];
               const look = () => {
                 const text = document.getElementById('banner')?.innerText;
                 if (text) done(text); else setTimeout(look, 50);
               };
               look();"""
        )
        self.assertIn("The daemon is away", banner)
        self.assertEqual(self.browser.violations(), [])

    def test_times_have_three_or_four_digits(self):
        for value, text in (
            (0.52, "0.520"),
            (4.1234, "4.123"),
            (41.2, "41.20"),
            (412.34, "412.3"),
            (4123.4, "4,123"),
            (0, "\u2013"),
        ):
            self.assertEqual(self.module("format.js", "m.us(a[0])", value), text)
        self.assertEqual(self.module("format.js", "m.usChange(-3.1)"), "\u22123.100")
        self.assertEqual(
            self.module("format.js", "[0.0419, -0.02, 0.0001].map(m.percentChange)"), ["+4.2 %", "\u22122.0 %", "0.0 %"]
        )

    def test_durations_and_dates_have_units_and_a_zone(self):
        self.assertEqual(
            self.module("format.js", "[26, 71, 7500, 200000].map(m.durationText)"),
            ["26 s", "1 min 11 s", "2 h 5 min", "2 days"],
        )
        self.assertEqual(self.module("format.js", "m.seconds('95.500s')"), 95.5)
        self.assertRegex(
            self.module("format.js", "m.moment('2026-11-23T02:14:07Z')"),
            r"^2026-11-2\d \d\d:\d\d UTC([+-]\d+(:\d\d)?)?$",
        )
        self.assertEqual(self.module("format.js", "m.moment(undefined)"), "\u2013")

    def test_a_query_leaves_defaults_out_and_nests_by_dots(self):
        query = {
            "filter": {"problem": "b1.h1", "family": ""},
            "states": ["A", "B"],
            "points": 60,
            "history": False,
            "page_token": "a&b",
        }
        self.assertEqual(
            self.module("api.js", "m.queryText(a[0])", query),
            "filter.problem=b1.h1&page_token=a%26b&points=60&states=A&states=B",
        )

    def test_addresses_read_back_as_they_were_written(self):
        for page, subject, query in (
            ("problem", "b2.h8.q512.d64.f16", {"class": "l4"}),
            ("job", "operations/7", {}),
            ("problem", "<img src=x>/?#&", {"policy": "cold"}),
        ):
            read = self.module("router.js", "m.parseAddress(m.addressOf(...a))", page, subject, query)
            self.assertEqual(read, {"page": page, "subject": subject, "query": query})
        self.assertEqual(self.module("router.js", "m.parseAddress('').page"), "health")

    def test_a_problems_link_names_its_policy(self):
        for policy, query in (
            ("POLICY_HOT", {}),
            ("POLICY_COLD", {"policy": "cold"}),
            ("POLICY_L2_WARM", {"policy": "l2-warm"}),
        ):
            href = self.module("parts.js", "m.problemLink('b1.h1', '', a[0]).getAttribute('href')", policy)
            self.assertEqual(self.module("router.js", "m.parseAddress(a[0])", href)["query"], query)
            self.assertEqual(self.module("format.js", "m.policyName(a[0])", query.get("policy", "hot")), policy)

    def test_a_command_is_one_word_for_each_argument(self):
        quoted = self.module("commands.js", "m.quote(a[0])", "it's <b> $HOME")
        self.assertEqual(quoted, "'it'\\''s <b> $HOME'")
        command = self.module(
            "commands.js", "m.evaluateCommand('b1.h1.q16.d32.f16', 'f:A=1,B=2', 'cuda:1', 'POLICY_COLD')"
        )
        self.assertEqual(command, "attune evaluate b1.h1.q16.d32.f16 f:A=1,B=2 --device cuda:1 --policy cold")
        command = self.module(
            "commands.js",
            "m.compareCommand({end_time: '2026-11-01', device_id: 'l4'}, {toolchain: 'nvrtc 13.0'}, 'hot')",
        )
        self.assertEqual(command, "attune compare date=2026-11-01,device=l4 'toolchain=nvrtc 13.0'")

    def test_variants_show_what_differs(self):
        change = self.module("variants.js", "m.variantChange('f:A=1,B=2', 'f:A=1,B=4')")
        self.assertEqual(change, "B 2 → 4")
        self.assertEqual(self.module("variants.js", "m.variantChange('f:A=1', 'g:A=1')"), "f → g")
        self.assertEqual(
            self.module("variants.js", "m.parametersOf({parameters: [{name: 'A', value: '8'}, {name: 'B'}]})"),
            {"A": 8, "B": 0},
        )

    def test_what_lost_most_time_comes_first(self):
        trends = [trend("small", "SLOWER", 10, 12), trend("large", "SLOWER", 1000, 1030), trend("same", "SAME", 10, 10)]
        groups = self.module("health.js", "m.sortTrends(a[0])", trends)
        self.assertEqual([each["problemText"] for each in groups["SLOWER"]], ["large", "small"])
        self.assertEqual([each["problemText"] for each in groups["SAME"]], ["same"])

    def test_what_its_nights_pass_over_is_not_steady_but_a_regression_remains_one(self):
        old = {"latestTime": "2026-11-01T02:00:00Z"}
        trends = [
            trend("new", "SAME", 10, 10),
            trend("old", "SAME", 10, 10, **old),
            trend("slow", "SLOWER", 10, 12, **old),
        ]
        trends.append({**trend("never", "NOT_TIMED", 10, 0), "latestTime": None})
        groups = self.module("health.js", "m.sortTrends(a[0])", trends)
        self.assertEqual([each["problemText"] for each in groups["NOT_TIMED"]], ["old", "never"])
        self.assertEqual([each["problemText"] for each in groups["SLOWER"]], ["slow"])

    def test_geometric_means_say_what_they_cover(self):
        trends = [trend(name, "SAME", 10, 10) for name in ("a", "b", "c")]
        baseline = {
            "deviceId": "cuda:0",
            "policy": "POLICY_HOT",
            "contender": "sdpa",
            "recordTime": "2026-01-02T00:00:00Z",
        }
        older = {**baseline, "problemText": "a", "medianUs": 1, "recordTime": "2026-01-01T00:00:00Z"}
        baselines = [
            older,
            {**baseline, "problemText": "a", "medianUs": 40},
            {**baseline, "problemText": "b", "medianUs": 9},
        ]
        rows = self.module(
            "health.js", f"m.meansAgainstBaselines(a[0], a[1], new Map([['cuda:0', '{'c' * 64}']]))", trends, baselines
        )
        self.assertEqual(len(rows), 1)
        self.assertAlmostEqual(rows[0]["mean"], (4 * 0.9) ** 0.5)
        self.assertEqual((rows[0]["covered"], rows[0]["of"], rows[0]["excluded"]), (2, 3, ["c"]))
        self.assertEqual([problem for problem, _ in rows[0]["behind"]], ["b"])

    def test_marks_stand_where_something_changed(self):
        nights = [
            night(1, 10),
            night(2, 10),
            night(3, 11, driver="590.2"),
            night(4, 11, driver="590.2", source="b" * 64),
        ]
        marks = self.module("nights.js", "m.marksOf(a[0], [])", nights)
        self.assertEqual([[change["what"] for change in mark["changes"]] for mark in marks], [["driver"], ["source"]])
        # Another family has other sources: nothing of the old one has changed.
        nights.append(night(5, 9, driver="590.2", variant="attention_wmma:BLOCK_M=64", source="c" * 64))
        incumbents = [
            {
                "promoteTime": "2026-01-05T02:00:01Z",
                "why": "faster",
                "trial": {"variant": {"text": "attention_wmma:BLOCK_M=64"}},
            },
            {"promoteTime": "2026-01-01T01:00:00Z", "trial": {"variant": {"text": "attention_mma:BLOCK_M=64"}}},
        ]
        marks = self.module("nights.js", "m.marksOf(a[0], a[1])", nights, incumbents)
        self.assertEqual(marks[-1]["changes"][0]["what"], "variant")
        self.assertEqual(marks[-1]["why"], "faster")
        self.assertEqual(len(marks), 3)

    def test_the_best_so_far_only_improves(self):
        trials = [
            {
                "name": f"trials/{i}",
                "verdict": "VERDICT_OK",
                "finishTime": f"2026-01-01T00:00:0{i}Z",
                "timing": {"medianUs": us},
            }
            for i, us in enumerate((9, 12, 7, 8, 5))
        ]
        trials.append(
            {
                "name": "trials/9",
                "verdict": "VERDICT_WRONG_RESULT",
                "finishTime": "2026-01-01T00:00:09Z",
                "timing": {"medianUs": 1},
            }
        )
        self.assertEqual(self.module("jobs.js", "m.bestSoFar(a[0]).map((step) => step.us)", trials), [9, 7, 5])
        self.assertAlmostEqual(
            self.module("jobs.js", "m.trialsPerSecond({trialsDone: '30', trialsReused: '10', elapsed: '10s'})"), 2
        )

    def test_the_space_has_an_axis_for_what_varies(self):
        trials = []
        for i, (a, b, us) in enumerate(((1, 8, 5), (2, 8, 3), (4, 8, 0))):
            values = [{"name": "A", "value": str(a)}, {"name": "B", "value": str(b)}]
            ok = {"verdict": "VERDICT_OK", "timing": {"medianUs": us}} if us else {"verdict": "VERDICT_CRASHED"}
            trials.append({"name": f"trials/{i}", "variant": {"family": "f", "parameters": values}, **ok})
        axes = self.module("space.js", "m.axesOf(m.pointsOf(a[0], 'f'))", trials)
        self.assertEqual(axes, [{"name": "A", "values": [1, 2, 4]}])
        top = self.module("space.js", "m.topShare(m.pointsOf(a[0], 'f'), 0.2).map((point) => point.us)", trials)
        self.assertEqual(top, [3])
        cells = self.module(
            "space.js",
            "m.verdictMap(m.pointsOf(a[0], 'f'), {name: 'A', values: [1, 4]}, {name: 'B', values: [8]})",
            trials,
        )
        self.assertEqual([(cell["tried"], cell["ok"]) for cell in cells[0]], [(1, 1), (1, 0)])
        slow = [{**trials[0], "verdict": "VERDICT_SLOW"}]
        points = self.module("space.js", "m.pointsOf(a[0], 'f').map((point) => point.us)", slow)
        self.assertEqual(points, [trials[0]["timing"]["medianUs"]])
        passes = self.module(
            "space.js", "m.pointsOf(a[0], 'f').map((point) => m.passes(point, {A: [2, 4], us: [0, 9]}))", trials
        )
        self.assertEqual(passes, [True, False, False])

    def test_roofs_are_the_theoretical_bandwidth_and_the_best_reached(self):
        trends = [
            {**trend("a", "SAME", 10, 10), "flops": 1e9, "bytes": 1e6},
            {**trend("b", "SAME", 10, 10), "flops": 1e6, "bytes": 1e6},
        ]
        roofs = self.module("roofline.js", "m.roofsOf(m.rooflinePoints(a[0]), {memoryBandwidthGbs: '200'})", trends)
        self.assertEqual(roofs, {"bandwidth": 200e9, "reachedBytes": 1e11, "reachedFlops": 1e14})
        shares = self.module(
            "roofline.js", "m.rooflinePoints(a[0]).map((point) => m.shareOfRoof(point, a[1]))", trends, roofs
        )
        self.assertEqual([round(share, 6) for share in shares], [1, 0.5])

    def test_throttling_reads_as_words(self):
        self.assertEqual(self.module("page_devices.js", "m.throttleWords('36')"), "power cap, thermal, by software")
        self.assertEqual(self.module("page_devices.js", "m.throttleWords(undefined)"), "none")

    def test_a_fleets_job_runs_on_the_card_of_its_host(self):
        device = {"id": "cuda:0", "uuid": "GPU-1", "fingerprint": "f"}
        hosts = [
            {"name": "hosts/a", "devices": [device]},
            {"name": "hosts/b", "devices": [{**device, "uuid": "GPU-2"}]},
        ]

        def runs_on(card):
            job = {"progress": {"deviceId": card}}
            return self.module("page_devices.js", "m.runsOn(a[0], a[1], a[2])", job, device, hosts)

        self.assertTrue(runs_on("cuda:0"))
        self.assertTrue(runs_on("hosts/a/devices/cuda:0"))
        self.assertFalse(runs_on("hosts/b/devices/cuda:0"))

    def test_a_hosts_cards_read_as_words(self):
        devices = [{"id": f"cuda:{i}", "classAlias": "h200"} for i in range(2)]
        words = self.module("page_devices.js", "m.cardWords(a[0])", [*devices, {"id": "opencl:0", "classAlias": "cpu"}])
        self.assertEqual(words, "cuda:0, cuda:1 (h200); opencl:0 (cpu)")
        self.assertEqual(self.module("page_devices.js", "m.cardWords(undefined)"), "none: a gateway")


if __name__ == "__main__":
    unittest.main()
