"""Every block of docs/tutorials that is marked `sh` or `python`, in its order, against a daemon of its own."""

import os
import re
import subprocess
import unittest

from harness import BUILD, PATIENCE, ROOT, DaemonTest

TUTORIALS = ROOT / "docs/tutorials"
PYTHON = BUILD / "python-venv/bin/python"  # client/python/test makes it
PROBLEM = "b1.h1.q128.d64.f16"


def blocks(text):
    """[(language, code)] of the blocks that have one."""
    return re.findall(r"^```(\w+)\n(.*?)^```$", text, re.S | re.M)


class TutorialsTest(DaemonTest):
    def follow(self, name):
        """What the tutorial's commands print; the daemon."""
        daemon = self.daemon()
        folder = self.directory / "folder"
        folder.mkdir()
        environment = {**os.environ, "ATTUNE_SERVER": daemon.address, "PATH": f"{BUILD / 'bin'}:{os.environ['PATH']}"}
        environment["XDG_DATA_HOME"] = str(self.directory / "data-home")
        printed = ""
        found = blocks((TUTORIALS / name).read_text())
        self.assertTrue(found)
        for language, code in found:
            if language == "python" and not PYTHON.exists():
                continue
            command = {"sh": ["bash", "-euo", "pipefail", "-c", code], "python": [PYTHON, "-c", code]}[language]
            run = subprocess.run(
                command, cwd=folder, env=environment, capture_output=True, text=True, timeout=4 * PATIENCE
            )
            self.assertEqual(run.returncode, 0, f"{name}:\n{code}\n{run.stdout}{run.stderr}")
            printed += run.stdout
        return printed, daemon

    def test_from_a_laptop(self):
        printed, daemon = self.follow("laptop.md")
        self.assertIn("HEURISTIC", printed)
        self.assertRegex(printed, r"provenance +(EXACT|TIE)")
        self.assertEqual(daemon.json("jobs")[-1]["state"], "SUCCEEDED")
        daemon.stop()

    def test_an_inference_server(self):
        printed, daemon = self.follow("inference-server.md")
        self.assertIn("NEAREST", printed)
        self.assertGreater((self.directory / "folder/kernel.bin").stat().st_size, 0)
        self.assertIn("b1.h4.kvh2.q1.kv300.d64.f16", printed)
        daemon.stop()

    def test_nights(self):
        printed, daemon = self.follow("nights.md")
        self.assertIn("3", re.search(r"(\d+) problems", printed)[1])
        self.assertEqual((self.directory / "folder/first.md").read_text().count("NEW"), 3 + 1)
        self.assertTrue((self.directory / "folder/second.xml").read_text().startswith("<?xml"))
        daemon.stop()

    def test_a_kernel_of_ones_own(self):
        printed, daemon = self.follow("kernel.md")
        self.assertIn("KEEP", printed)
        self.assertIn("REVERT", printed)
        self.assertEqual(len(daemon.json("submissions", "--loop", "first")), 2)
        daemon.stop()

    def test_each_tutorial_is_listed_and_followed(self):
        names = {path.name for path in TUTORIALS.glob("*.md")} - {"README.md"}
        # fleet_day_test.py has the fleet's.
        self.assertEqual(names, {"laptop.md", "inference-server.md", "nights.md", "kernel.md", "fleet.md"})
        listed = set(re.findall(r"\]\((\w[\w-]*\.md)\)", (TUTORIALS / "README.md").read_text()))
        self.assertEqual(listed, names)

    def test_links_lead_somewhere(self):
        for path in TUTORIALS.glob("*.md"):
            for link in re.findall(r"\]\(([^)#:]+)\)", path.read_text()):
                self.assertTrue((path.parent / link).exists(), f"{path.name}: {link}")


if __name__ == "__main__":
    unittest.main()
