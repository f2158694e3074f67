"""A headless Chromium and `attune dashboard`, for tests and screenshots.

Chromium comes from Debian's packages: chromium, chromium-driver, python3-selenium (deploy/dependencies --test).
Environment: ATTUNE_WEB_ROOT, a folder with the pages, instead of those that attune was built with.
"""

import base64
import json
import os
import subprocess

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

CHROMIUM = "/usr/bin/chromium"
DRIVER = "/usr/bin/chromedriver"

# Runs before any script of a page: keeps what violates the content-security policy.
WITNESS = """
window.violations = [];
document.addEventListener('securitypolicyviolation', (event) =>
  window.violations.push(event.violatedDirective + ' ' + event.blockedURI + ' ' + event.sourceFile));
"""

# Resolves, with the milliseconds since the page was asked for, once nothing is loading.
LOADED = """
const done = arguments[arguments.length - 1];
const end = performance.now() + 60000;
const look = () => {
  const root = document.querySelector('.page');
  if (root && root.children.length && !root.querySelector('.loading')) done(performance.now());
  else if (performance.now() > end) done(-1);
  else setTimeout(look, 10);
};
look();
"""

# Bytes over the wire, headers too, of the page and all that it asked for.
TRANSFERRED = """
return performance.getEntriesByType('navigation').concat(performance.getEntriesByType('resource'))
  .reduce((sum, entry) => sum + entry.transferSize, 0);
"""


class Dashboard:
    """`attune dashboard` on a free port of its own."""

    def __init__(self, attune, server):
        command = [str(attune), "--server", server, "--format=json", "dashboard", "--listen", "127.0.0.1:0"]
        if "ATTUNE_WEB_ROOT" in os.environ:
            command += ["--web-root", os.environ["ATTUNE_WEB_ROOT"]]
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            text=True,
        )
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(f"attune dashboard ended with {self.process.wait()}")
        self.url = json.loads(line)["url"]

    def stop(self):
        self.process.terminate()
        self.process.wait(30)
        self.process.stdout.close()


class Browser:
    """One window; each page is opened afresh, without a cache."""

    def __init__(self, url, width=1600, height=1000):
        options = webdriver.ChromeOptions()
        options.binary_location = CHROMIUM
        for argument in (
            "--headless=new",
            "--no-sandbox",  # of root, as in containers
            "--disable-dev-shm-usage",
            "--disable-gpu",
            "--hide-scrollbars",
            "--force-device-scale-factor=1",
            f"--window-size={max(width, 500)},{height}",
        ):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.url = url
        self.driver = webdriver.Chrome(service=Service(DRIVER), options=options)
        self.driver.set_script_timeout(90)
        self._cdp("Page.addScriptToEvaluateOnNewDocument", source=WITNESS)
        self._cdp("Network.enable")
        self._cdp("Network.setCacheDisabled", cacheDisabled=True)
        self.resize(width, height)

    def _cdp(self, command, **parameters):
        return self.driver.execute_cdp_cmd(command, parameters)

    def close(self):
        self.driver.quit()

    def resize(self, width, height=1000):
        self._cdp("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def media(self, theme="light", media=""):
        """What the reader's system asks for: a colour scheme, and "print" instead of a screen."""
        features = [{"name": "prefers-color-scheme", "value": theme}]
        self._cdp("Emulation.setEmulatedMedia", media=media, features=features)

    def js(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def open(self, address):
        """Opens "#/health" and so on; returns the milliseconds until its data was there."""
        # From one address behind '#' to another the browser loads nothing anew.
        self.driver.get("about:blank")
        self.driver.get(self.url + address)
        took = self.loaded()
        if took < 0:
            raise AssertionError(f"{address} is still loading: {self.text()}")
        return took

    def loaded(self):
        return self.driver.execute_async_script(LOADED)

    def transferred(self):
        return self.js(TRANSFERRED)

    def text(self):
        return self.js("return document.body.innerText")

    def violations(self):
        return self.js("return window.violations")

    def console(self):
        """What the console says since the last look."""
        return [f"{entry['level']} {entry['message']}" for entry in self.driver.get_log("browser")]

    def module(self, name, expression, *arguments):
        """The value of `expression` over `m`, a module of the page, and `a`, the arguments."""
        script = f"""
            const done = arguments[arguments.length - 1];
            const a = Array.from(arguments).slice(0, -1);
            import('/{name}').then((m) => done({{value: {expression}}}))
              .catch((error) => done({{error: String(error)}}));
        """
        answer = self.driver.execute_async_script(script, *arguments)
        if "error" in answer:
            raise AssertionError(f"{name}: {answer['error']}")
        return answer["value"]

    def screenshot(self, path, most=2600):
        """The whole page, at most that high."""
        height = min(most, self.js("return document.documentElement.scrollHeight"))
        self.resize(self.js("return document.documentElement.clientWidth"), height)
        # Charts follow the window in a frame or two.
        self.driver.execute_async_script("setTimeout(arguments[0], 700)")
        answer = self._cdp("Page.captureScreenshot", format="png")
        path.write_bytes(base64.b64decode(answer["data"]))
