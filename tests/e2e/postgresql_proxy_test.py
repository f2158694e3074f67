"""The proxy before PostgreSQL passes everything on, holds it, or drops it at the moment it was told to."""

import subprocess
import tempfile
import threading
import unittest

import postgresql
from harness import PATIENCE, wait_until
from postgresql_proxy import Drop, PostgresqlProxy


@unittest.skipUnless(postgresql.programs(), "no PostgreSQL server is installed (Debian's package: postgresql-15)")
class PostgresqlProxyTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = postgresql.PostgresqlServer()
        cls.addClassCleanup(cls.server.close)
        cls.server.execute("CREATE TABLE numbers (number bigint)")

    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="attune-proxy-", dir="/tmp")
        self.addCleanup(directory.cleanup)
        self.proxy = PostgresqlProxy(directory.name, self.server.directory)
        self.addCleanup(self.proxy.close)
        self.server.execute("TRUNCATE numbers")

    def psql(self, *statements):
        words = [word for statement in statements for word in ("-c", statement)]
        target = f"postgresql://attune@/postgres?host={self.proxy.directory}"
        return subprocess.run(
            ["psql", "-X", "-v", "ON_ERROR_STOP=1", "-d", target, "-qtA", *words], capture_output=True, text=True
        )

    def write(self):
        return self.psql("BEGIN", "INSERT INTO numbers VALUES (1)", "COMMIT")

    def count(self):
        return self.server.number("SELECT count(*) FROM numbers")

    def test_passes_on_what_it_was_told_nothing_of(self):
        long = "x" * 100_000
        self.assertEqual(self.psql(f"SELECT '{long}' || repeat('x', 1000000)").stdout.strip(), long + "x" * 1_000_000)
        self.assertEqual(self.write().returncode, 0)
        self.assertEqual(self.count(), 1)

    def test_drops_a_commit_before_it_is_made(self):
        self.proxy.drop_at("COMMIT", Drop.UNSENT)
        self.assertNotEqual(self.write().returncode, 0)
        self.assertEqual(self.count(), 0)
        self.assertFalse(self.proxy.waiting)
        self.assertEqual(self.write().returncode, 0, "only one is dropped")

    def test_drops_a_commit_that_was_made(self):
        self.proxy.drop_at("COMMIT", Drop.ANSWERED)
        self.assertNotEqual(self.write().returncode, 0)
        self.assertEqual(self.count(), 1)

    def test_drops_a_commit_that_was_sent(self):
        self.proxy.drop_at("COMMIT", Drop.SENT)
        self.assertNotEqual(self.write().returncode, 0)
        wait_until("the commit", lambda: self.count() == 1)
        self.assertEqual(dict(self.proxy.dropped), {("COMMIT", Drop.SENT): 1})

    def test_waits_for_the_statement_that_it_was_told(self):
        self.proxy.drop_at("COMMIT", Drop.UNSENT)
        self.assertEqual(self.psql("INSERT INTO numbers VALUES (1)").returncode, 0)
        self.assertTrue(self.proxy.waiting)

    def test_what_is_sent_while_it_is_frozen_arrives_later(self):
        self.proxy.freeze()
        writer = threading.Thread(target=self.write)
        writer.start()
        writer.join(0.5)
        self.assertTrue(writer.is_alive())
        self.assertEqual(self.count(), 0)
        self.proxy.thaw()
        writer.join(PATIENCE)
        self.assertFalse(writer.is_alive())
        self.assertEqual(self.count(), 1)

    def test_a_server_that_is_away_is_a_closed_connection(self):
        self.server.stop()
        self.addCleanup(self.server.start)
        self.assertNotEqual(self.write().returncode, 0)


if __name__ == "__main__":
    unittest.main()
