"""The dashboard's Devices page in a real browser, of a fleet: a gateway and a host with PoCL on a real PostgreSQL."""

import unittest

from browser import Browser, Dashboard
from stored_year import ATTUNE, wait_until

from fleet_case import FleetCase  # isort: skip  (stored_year says where it is)

TEXT = "return document.querySelector('main').innerText"


class FleetTest(FleetCase):
    def test_devices_lists_all_hosts_with_their_cards(self):
        gateway = self.member("gateway", gateway=True)
        host = self.member("host")
        name = self.name(host)
        dashboard = Dashboard(ATTUNE, gateway.address)
        self.addCleanup(dashboard.stop)
        browser = Browser(dashboard.url)
        self.addCleanup(browser.close)
        for width in (1600, 400):
            browser.resize(width)
            browser.open("#/devices")
            wait_until("the host's row", lambda: name in browser.js(TEXT), 60)
            text = browser.js(TEXT)
            self.assertIn("the hosts that share its store tune", text)
            self.assertIn("opencl:0 (pthread)", text)
            self.assertIn("none: a gateway", text)
            self.assertIn("LIVE", text)
            wait_until(
                "a page as wide as the window",
                lambda: browser.js("return document.documentElement.scrollWidth <= innerWidth"),
                60,
            )
            self.assertEqual(browser.violations(), [])
            self.assertEqual(browser.console(), [])
        host.attune("hosts", "drain", name)
        wait_until("that it drains", lambda: "LIVE, draining" in browser.js(TEXT), 60)


if __name__ == "__main__":
    unittest.main()
