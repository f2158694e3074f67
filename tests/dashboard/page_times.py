"""How long each page takes to its data, and how many bytes, over a data directory of fill_year's.

build/tests/dashboard/fill_year --data_dir=DIR/data --trials=1000000 > DIR/truth.json
ATTUNE_BUILD=build /usr/bin/python3 tests/dashboard/page_times.py DIR
"""

import json
import pathlib
import statistics
import sys

from browser import Browser, Dashboard
from stored_year import ATTUNE, Daemon, addresses

ROUNDS = 5


def main():
    directory = pathlib.Path(sys.argv[1])
    truth = json.loads((directory / "truth.json").read_text())
    daemon = Daemon(directory).start()
    dashboard = Dashboard(ATTUNE, daemon.address)
    browser = Browser(dashboard.url)
    try:
        for page, address in addresses(daemon, truth).items():
            # From about:blank each time, without the browser's cache; the dashboard's own lasts a second.
            times = [browser.open(address) for _ in range(ROUNDS)]
            kilobytes = browser.transferred() / 1e3
            print(f"{page:10} {statistics.median(times):6.0f} ms, at most {max(times):.0f}; {kilobytes:.0f} kB")
    finally:
        browser.close()
        dashboard.stop()
        daemon.stop()


if __name__ == "__main__":
    main()
