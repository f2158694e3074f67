"""A daemon that starts while its database is away answers from its copy, and joins its fleet when that is back."""

import re
import unittest
import urllib.request

from fleet_case import FleetCase
from harness import PATIENCE, wait_until, without_opencl

PROBLEM = "b1.h1.q32.d32.f16"
OTHER = "b1.h1.q64.d32.f16"
BUDGET = ("--strategy=random", "--max-trials=2", "--seed=3")
SECRET = "geheim-1729"
FROM_THE_COPY = "are served from the copy"


class FleetEdgeTest(FleetCase):
    def edge(self, known=b""):
        """A gateway that keeps a copy in which this is known; killed, with its database stopped."""
        gateway = self.member("gateway", start=False)
        # The password is not asked for, and must be in no message.
        target = self.server.target.replace("attune@", f"attune:{SECRET}@")
        gateway.flags = [f"--store={target}", "--metrics_listen=0"]
        self.start(gateway, " serving ")
        self.copy = gateway.data / "served.copy"
        wait_until("the copy", lambda: self.copy.exists() and known in self.copy.read_bytes())
        gateway.kill()
        self.server.stop()
        return gateway

    def start(self, gateway, until):
        return gateway.start(environment=without_opencl(gateway.directory), until=until)

    def tune(self, daemon, problem):
        self.assertEqual(daemon.json("tune", problem, *BUDGET)[-1]["type"], "tuning", daemon.log)

    def writable(self, daemon):
        url = "http://" + re.search(r"metrics exposed address=(\S+)", daemon.log)[1]
        with urllib.request.urlopen(url + "/metrics", timeout=PATIENCE) as answer:
            return re.search(r"(?m)^attune_store_writable (\d)", answer.read().decode())[1]

    def test_started_without_its_database_it_answers_from_its_copy_and_joins_when_that_is_back(self):
        host = self.member("host")
        self.tune(host, PROBLEM)
        gateway = self.edge(PROBLEM.encode())
        # It may be stopped meanwhile.
        self.start(gateway, FROM_THE_COPY).stop()
        self.assertIn("stopped before the database was back", gateway.log)
        process = self.start(gateway, FROM_THE_COPY).process.pid
        [best] = gateway.json("best", PROBLEM)
        self.assertIn(best["provenance"], ("EXACT", "TIE"))
        self.assertRegex(best["provenance_detail"], r"from this daemon's copy of 20\d\d-.* UTC: the database has not")
        # The nearest comes from it, too.
        self.assertIn("from this daemon's copy", gateway.json("best", OTHER)[0]["provenance_detail"])
        # Classes of other hosts are known by name, and what this host has.
        self.assertEqual(gateway.json("--device", "pthread", "best", PROBLEM)[0]["variant"], best["variant"])
        gateway.attune("devices")
        for command in (("tune", PROBLEM, *BUDGET), ("jobs",), ("hosts",)):
            refused = gateway.attune(*command, check=False)
            self.assertNotEqual(refused.returncode, 0)
            self.assertRegex(refused.stderr, "since this daemon started, the database is away: PostgreSQL at", command)
            self.assertNotIn(SECRET, refused.stderr)
        self.assertEqual(self.writable(gateway), "0")
        [said] = re.findall(r".*look-ups are answered from a copy.*", gateway.log)
        self.assertRegex(said, r"warning.*copy_age=")
        self.assertIn(str(self.server.directory), said)
        self.assertNotIn(SECRET, gateway.log)
        self.assertNotIn(SECRET.encode(), self.copy.read_bytes())

        self.server.start()
        wait_until("it to be a member", lambda: " serving " in gateway.log)
        self.assertNotIn("copy", gateway.json("best", PROBLEM)[0]["provenance_detail"], "the store's answer")
        states = {host["host"]: host["state"] for host in gateway.json("hosts")}
        self.assertEqual(states[self.name(gateway)], "LIVE")
        wait_until("the host's beat", lambda: "pthread" in gateway.attune("hosts").stdout)
        self.tune(gateway, OTHER)
        wait_until("the incumbent", lambda: gateway.json("best", OTHER)[0]["provenance"] in ("EXACT", "TIE"))
        self.assertEqual((gateway.process.poll(), gateway.process.pid), (None, process), gateway.log)
        self.assertEqual(self.writable(gateway), "1")
        gateway.stop()

    def test_it_ends_without_a_copy_that_is_of_use_and_where_the_database_refuses_it(self):
        gateway = self.edge()
        kept = self.copy.read_bytes()
        self.copy.write_bytes(kept[:-1])
        with self.assertRaisesRegex(AssertionError, r"(?s)copy of what was served is not used.*damaged.*cannot serve"):
            self.start(gateway, FROM_THE_COPY)
        self.assertNotIn(SECRET, gateway.log)

        self.copy.write_bytes(kept)
        self.server.start()
        gateway.flags[0] = gateway.flags[0].replace("/postgres?", "/no_such_database?")
        with self.assertRaisesRegex(AssertionError, r'cannot serve.*database \\?"no_such_database\\?" does not exist'):
            self.start(gateway, FROM_THE_COPY)
        self.assertNotIn("from a copy", gateway.log)


if __name__ == "__main__":
    unittest.main()
