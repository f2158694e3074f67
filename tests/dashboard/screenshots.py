"""Takes docs/dashboard/*.png: every page in light and dark, Health on a narrow screen, too. Look at them afterwards.

ATTUNE_BUILD=build ATTUNE_YEAR_NIGHTS=365 python3 tests/dashboard/screenshots.py [DIRECTORY]
"""

import pathlib
import sys

from browser import Browser, Dashboard
from stored_year import ATTUNE, ROOT, StoredYear, addresses, wait_until

# What runs while the pictures are taken: slow enough for the CPU to be seen at it.
RUNNING = "b2.h8.q256.d64.f16"
WAITING = "b1.h8.q128.d64.f16.causal"

# Pixels, from the top: a picture is to stay below 150 kB.
HEIGHTS = {"health": 640}


def main():
    directory = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs/dashboard"
    directory.mkdir(parents=True, exist_ok=True)
    year = StoredYear()
    dashboard = Dashboard(ATTUNE, year.daemon.address)
    browser = Browser(dashboard.url, width=1280)
    try:
        pages = addresses(year.daemon, year.truth)
        for problem in (RUNNING, WAITING):
            year.daemon.attune("tune", problem, "--detach")
        wait_until("trials", lambda: len(year.daemon.trials(RUNNING)) > 10)
        for theme in ("light", "dark"):
            browser.media(theme)
            for page, address in pages.items():
                browser.resize(1280)
                browser.open(address)
                browser.screenshot(directory / f"{page}-{theme}.png", most=HEIGHTS.get(page, 940))
        browser.resize(400)
        browser.media("light")
        browser.open(pages["health"])
        browser.screenshot(directory / "health-narrow.png", most=1600)
    finally:
        browser.close()
        dashboard.stop()
        year.close()
    for path in sorted(directory.glob("*.png")):
        print(f"{path.stat().st_size / 1000:6.0f} kB {path.name}")


if __name__ == "__main__":
    main()
