"""A store with the code alone, made of one with the schema of today."""

import pathlib
import sqlite3
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from code_only import copy_code

DUMPS = HERE.parents[1] / "server/store/testdata"


def newest_dump():
    """Of a store with rows in its tables; the version is in the name."""
    versions = {int(path.stem[1:]): path for path in DUMPS.glob("v*.sql") if path.stem[1:].isdigit()}
    return versions[max(versions)]


class CodeOnly(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="code-only-test-")
        self.addCleanup(folder.cleanup)
        self.data, self.target = pathlib.Path(folder.name, "data"), pathlib.Path(folder.name, "target")
        (self.data / "artifacts" / "ab").mkdir(parents=True)
        (self.data / "artifacts" / "ab" / "abcd").write_bytes(b"code")
        (self.data / "attune.lock").write_text("7")
        (self.data / "host.binpb").write_bytes(b"host")
        connection = sqlite3.connect(self.data / "attune.db")
        connection.executescript(newest_dump().read_text())
        connection.close()

    def tables(self, data):
        connection = sqlite3.connect(data / "attune.db")
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        rows = {name: connection.execute(f'SELECT * FROM "{name}"').fetchall() for name in names}
        version = (
            connection.execute("PRAGMA user_version").fetchone(),
            connection.execute("PRAGMA application_id").fetchone(),
        )
        connection.close()
        return {name: found for name, found in rows.items() if found}, version

    def test_keeps_what_was_compiled_and_forgets_the_rest(self):
        before, version = self.tables(self.data)
        self.assertIn("trials", before)
        self.assertIn("incumbents", before)
        copy_code(self.data, self.target)
        after, same = self.tables(self.target)
        self.assertEqual(set(after) - {"sqlite_sequence"}, {"artifacts"})
        self.assertEqual(after["artifacts"], before["artifacts"])
        self.assertEqual(same, version)
        self.assertEqual((self.target / "artifacts" / "ab" / "abcd").read_bytes(), b"code")
        self.assertEqual((self.target / "host.binpb").read_bytes(), b"host")

    def test_leaves_what_is_copied_as_it_is_and_its_lock_behind(self):
        before = self.tables(self.data)
        copy_code(self.data, self.target)
        self.assertEqual(self.tables(self.data), before)
        self.assertFalse((self.target / "attune.lock").exists())

    def test_does_not_write_over_a_store(self):
        self.target.mkdir()
        with self.assertRaises(FileExistsError):
            copy_code(self.data, self.target)


if __name__ == "__main__":
    unittest.main()
