"""The dashboard in a real browser: `attune dashboard` before a real daemon with a year of nights in its store."""

import pathlib
import shlex
import unittest

from browser import Browser, Dashboard
from selenium.webdriver.common.keys import Keys
from stored_year import ATTUNE, HOSTILE, LIVE, StoredYear, addresses

MOST_BYTES = 1_000_000
CONTRAST = (pathlib.Path(__file__).parent / "contrast.js").read_text()
LONG = 60


class BrowserTest(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.year = StoredYear()
        cls.addClassCleanup(cls.year.close)
        cls.year.add_hostile_texts()
        dashboard = Dashboard(ATTUNE, cls.year.daemon.address)
        cls.addClassCleanup(dashboard.stop)
        cls.browser = Browser(dashboard.url)
        cls.addClassCleanup(cls.browser.close)
        cls.trends = [trend for trend in cls.year.daemon.json("trends", check=False) if trend["type"] == "trend"]
        cls.slower = [trend for trend in cls.trends if trend["state"] == "SLOWER"]
        cls.pages = addresses(cls.year.daemon, cls.year.truth)

    def setUp(self):
        self.browser.resize(1600)
        self.browser.media()
        self.browser.console()

    def assert_innocent(self, page):
        """No content-security violation, an empty console, and nobody's text has become HTML."""
        self.assertEqual(self.browser.violations(), [], page)
        self.assertEqual(self.browser.console(), [], page)
        self.assertIsNone(self.browser.js("return window.hostile ?? null"), page)
        self.assertEqual(
            self.browser.js("return document.querySelectorAll('img, iframe, object, embed').length"), 0, page
        )

    def wait(self, what, script, *arguments):
        """Until `script` gives something true."""
        answer = self.browser.driver.execute_async_script(
            f"""
            const done = arguments[arguments.length - 1];
            const look = (...a) => {{ {script} }};
            const end = performance.now() + {LONG * 1000};
            const again = () => {{
              const found = look(...Array.from(arguments).slice(0, -1));
              if (found || performance.now() > end) done(found || null);
              else setTimeout(again, 50);
            }};
            again();
            """,
            *arguments,
        )
        self.assertIsNotNone(answer, f"waited for {what}; the page says: {self.browser.text()[:2000]}")
        return answer

    def press(self, *keys):
        for key in keys:
            self.browser.driver.switch_to.active_element.send_keys(key)

    def focused(self):
        return self.browser.js(
            "return document.activeElement.innerText || document.activeElement.getAttribute('aria-label') || ''"
        )

    def test_every_page_opens_small_and_innocent(self):
        for page, address in self.pages.items():
            with self.subTest(page=page):
                took = self.browser.open(address)
                size = self.browser.transferred()
                print(f"\n{page}: {took:.0f} ms to its data, {size / 1e3:.0f} kB", end="", flush=True)
                self.assert_innocent(page)
                self.assertLess(size, MOST_BYTES)
                self.assertNotIn("The server refused this", self.browser.text())
                self.assertNotRegex(self.browser.text(), r"\b(NaN|undefined|null|Invalid Date)\b|\[object")

    def test_health_names_every_planted_regression_and_nothing_else(self):
        self.browser.open(self.pages["health"])
        planted = sorted(row["problem"] for row in self.year.truth["slower"])
        self.assertEqual(self.browser.js("return document.getElementById('regressions').innerText"), str(len(planted)))
        shown = self.browser.js(
            "return [...document.querySelectorAll('tr.slower')].map((row) => row.querySelector('a').textContent)"
        )
        self.assertEqual(sorted(shown), planted)
        lost = self.browser.js(
            "return [...document.querySelectorAll('tr.slower td:nth-child(2) .muted')].map((cell) => cell.textContent)"
        )
        lost = [float(text.split()[0].replace("+", "").replace(",", "")) for text in lost]
        self.assertEqual(lost, sorted(lost, reverse=True), "what lost most comes first")
        curves = self.browser.js("return document.querySelectorAll('tr.slower svg.spark[aria-label]').length")
        self.assertEqual(curves, len(self.slower))

    def test_from_health_to_the_command_that_reproduces(self):
        self.browser.open(self.pages["health"])
        fold = self.browser.driver.find_element("css selector", "tr.after summary")
        fold.click()
        commands = self.wait(
            "commands",
            """const all = [...document.querySelectorAll('tr.after details[open] code')];
               return all.length && all.map((code) => code.innerText)""",
        )
        worst = self.browser.js("return document.querySelector('tr.slower a').textContent")
        variant = next(trend["variant"] for trend in self.slower if trend["problem"] == worst)
        words = [shlex.split(command) for command in commands]
        self.assertEqual({each[0] for each in words}, {"attune"})
        self.assertIn(["attune", "evaluate", worst, variant], [each[:4] for each in words])
        history = next(each for each in words if each[1] == "history")
        self.assertIn(worst, history)
        # As it stands, it does what it says.
        times = self.year.daemon.json(*history[1:])
        self.assertGreaterEqual(len(times), 20)
        self.browser.driver.find_element("css selector", "tr.after button.copy").click()
        self.wait("a word that it was copied", "return document.querySelector('.said').innerText.length > 0")

        self.browser.driver.find_element("css selector", "tr.slower a").click()
        self.wait("the problem's page", "return document.querySelector('.page-problem canvas') !== null")
        self.assertIn(worst, self.browser.js("return document.querySelector('h1').textContent"))
        self.assertIn("SLOWER", self.browser.text())
        self.assert_innocent("problem")

    def test_hostile_texts_are_text(self):
        for page, address in {
            "health": "#/health",
            "jobs": "#/jobs",
            "job": self.pages["job"],
            "problem": f"#/problem/{LIVE}",
        }.items():
            with self.subTest(page=page):
                self.browser.open(address)
                for fold in self.browser.driver.find_elements("css selector", "details:not([open]) > summary"):
                    self.browser.js("arguments[0].click()", fold)
                self.wait("the hostile text", "return document.body.innerText.includes(a[0])", HOSTILE)
                self.assert_innocent(page)
        # Of the address, too.
        for address in (f"#/problem/{HOSTILE}", f"#/job/{HOSTILE}", f"#/{HOSTILE}", "#/space/", "#/problem/%E0%A4%A"):
            with self.subTest(address=address):
                self.browser.open(address)
                self.assertIsNone(self.browser.js("return window.hostile ?? null"))
                self.assertEqual(self.browser.violations(), [])
        self.browser.console()  # a problem that is none is refused with a status, which the browser writes down

    def test_the_daemon_goes_and_comes_back_while_the_page_is_open(self):
        self.browser.open(self.pages["health"])
        before = self.browser.js("return document.querySelectorAll('tr.slower').length")
        self.assertGreater(before, 0)
        self.year.daemon.kill()
        said = self.wait("the banner", "return document.getElementById('banner').innerText")
        self.assertRegex(said, r"The daemon is away since \d{4}-\d\d-\d\d \d\d:\d\d")
        self.assertEqual(self.browser.js("return document.querySelectorAll('tr.slower').length"), before)
        self.year.daemon.start()
        self.wait("the banner to go", "return document.getElementById('banner').innerText === ''")
        self.assertEqual(self.browser.js("return document.querySelectorAll('tr.slower').length"), before)
        # The only errors are the browser's own, on answers with a status of 503 or 504.
        other = [line for line in self.browser.console() if "status of 50" not in line]
        self.assertEqual(other, [])
        self.assertEqual(self.browser.violations(), [])

    def test_by_keyboard_alone(self):
        self.browser.open(self.pages["health"])
        self.press(Keys.TAB)
        self.assertEqual(self.focused(), "Skip to the content")
        self.press(Keys.ENTER)
        self.assertEqual(self.browser.js("return document.activeElement.id"), "main")
        self.assertEqual(self.browser.js("return location.hash"), "#/health")
        worst = self.browser.js("return document.querySelector('tr.slower a').textContent")
        for _ in range(40):
            self.press(Keys.TAB)
            outline = self.browser.js("return getComputedStyle(document.activeElement).outlineStyle")
            self.assertNotEqual(outline, "none", f"focus is not seen on {self.focused()}")
            if self.focused() == worst:
                break
        self.assertEqual(self.focused(), worst)
        self.press(Keys.ENTER)
        self.wait("the problem's page", "return document.querySelector('.page-problem canvas') !== null")
        self.browser.js("document.querySelector('canvas').focus()")
        self.press(Keys.END)
        said = self.wait("the last night read aloud", "return document.querySelector('figure [aria-live]').innerText")
        self.assertRegex(said, r"\d us \(95 %: ")
        self.press(Keys.ARROW_LEFT)
        self.assertNotEqual(self.browser.js("return document.querySelector('figure [aria-live]').innerText"), said)
        self.assert_innocent("problem")

    def test_reads_in_both_themes_and_on_a_narrow_screen(self):
        for theme in ("light", "dark"):
            self.browser.media(theme)
            for page, address in self.pages.items():
                with self.subTest(page=page, theme=theme):
                    self.browser.resize(1600)
                    self.browser.open(address)
                    self.assertEqual(self.browser.js("return document.documentElement.dataset.theme"), theme)
                    self.assertEqual(self.browser.js(CONTRAST), [])
                    self.browser.resize(400)
                    self.wait("a page as wide as the window", "return document.documentElement.scrollWidth <= 400")

    def test_the_theme_that_was_chosen_stays(self):
        self.browser.open(self.pages["devices"])
        self.browser.driver.find_element("id", "theme").click()
        self.assertEqual(self.browser.js("return document.documentElement.dataset.theme"), "dark")
        self.browser.open(self.pages["devices"])
        self.assertEqual(self.browser.js("return document.documentElement.dataset.theme"), "dark")
        self.browser.js("localStorage.clear()")

    def test_prints_without_its_controls(self):
        self.browser.open(self.pages["health"])
        self.browser.media(media="print")
        self.assertFalse(self.browser.js("return document.querySelector('header').checkVisibility()"))
        self.assertTrue(self.browser.js("return document.querySelector('tr.slower').checkVisibility()"))

    def test_charts_and_tables_have_words(self):
        for page, address in self.pages.items():
            with self.subTest(page=page):
                self.browser.open(address)
                silent = self.browser.js(
                    """return [...document.querySelectorAll('canvas, svg')]
                         .filter((each) => !each.getAttribute('aria-label')).length"""
                )
                self.assertEqual(silent, 0)
                nameless = self.browser.js(
                    """return [...document.querySelectorAll('button, a, select, input')].filter((each) => !(
                         each.innerText || each.getAttribute('aria-label') || each.closest('label')?.innerText))
                         .length"""
                )
                self.assertEqual(nameless, 0)
                tables = self.browser.js(
                    "return [...document.querySelectorAll('table')].filter((each) => !each.caption).length"
                )
                self.assertEqual(tables, 0)


if __name__ == "__main__":
    unittest.main()
