"""That what waits for a GPU (pending/README.md) still applies to the tree, each series by itself."""

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
                return f"{patch.parent.name}/{patch.name}: {done.stderr}"
    return ""


class PendingTest(unittest.TestCase):
    def test_every_series_applies(self):
        for series in sorted(path for path in PENDING.iterdir() if path.is_dir()):
            with self.subTest(series.name):
                patches = sorted(series.glob("*.patch"))
                self.assertTrue(patches, "an empty series")
                self.assertEqual(apply(patches), "")

    def test_one_that_does_not_is_told(self):
        with tempfile.TemporaryDirectory() as directory:
            patch = pathlib.Path(directory, "0001.patch")
            patch.write_text(
                "diff --git a/README.md b/README.md\n--- a/README.md\n+++ b/README.md\n@@ -1 +1 @@\n-never there\n+x\n"
            )
            self.assertIn("README.md", apply([patch]))

    def test_the_document_names_every_series(self):
        text = (PENDING / "README.md").read_text()
        for series in (path.name for path in PENDING.iterdir() if path.is_dir()):
            self.assertIn(f"`{series}`", text)


if __name__ == "__main__":
    unittest.main()
