"""That what waits for a GPU (pending/README.md) still applies to the tree."""

import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PENDING = ROOT / "tests/gpu/pending"


def touched(patch):
    """Paths that a patch reads or writes."""
    return {path for line in patch.read_text().splitlines() if (found := re.match(r"diff --git a/(\S+) b/(\S+)$", line))
            for path in found.groups()}  # fmt: skip


def apply(patches, root=ROOT):
    """Applies them one after the other to a copy of what they touch of `root`; what git says of the first that fails."""
    with tempfile.TemporaryDirectory() as directory:
        for path in set().union(*map(touched, patches)):
            if (root / path).is_file():
                copy = pathlib.Path(directory, path)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(root / path, copy)
        for patch in patches:
            done = subprocess.run(["git", "apply", patch], cwd=directory, capture_output=True, text=True)
            if done.returncode != 0:
                return f"{patch.name}: {done.stderr}"
    return ""


class PendingTest(unittest.TestCase):
    def test_the_series_applies(self):
        patches = sorted(PENDING.glob("*.patch"))
        self.assertTrue(patches, "nothing waits: remove the folder and this test")
        self.assertEqual(apply(patches), "")

    def test_one_that_does_not_is_told(self):
        with tempfile.TemporaryDirectory() as directory:
            patch = pathlib.Path(directory, "0001.patch")
            patch.write_text(
                "diff --git a/README.md b/README.md\n--- a/README.md\n+++ b/README.md\n@@ -1 +1 @@\n-never there\n+x\n"
            )
            self.assertIn("README.md", apply([patch]))


if __name__ == "__main__":
    unittest.main()
