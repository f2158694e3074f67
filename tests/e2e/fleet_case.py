"""What tests of a fleet share: a real PostgreSQL server, and daemons that have their store on it."""

import unittest

import postgresql
from harness import Daemon, DaemonTest, without_opencl


@unittest.skipUnless(postgresql.programs(), "no PostgreSQL server is installed (Debian's package: postgresql-15)")
class FleetCase(DaemonTest):
    def setUp(self):
        super().setUp()
        self.server = postgresql.PostgresqlServer()
        self.addCleanup(self.server.close)

    def member(self, name, start=True, gateway=False, flags=()):
        directory = self.directory / name
        directory.mkdir(exist_ok=True)
        daemon = Daemon(directory, flags=[f"--store={self.server.target}", "--trial_timeout=10m", *flags])
        self.addCleanup(lambda: daemon.process and daemon.process.poll() is None and daemon.kill())
        environment = without_opencl(directory) if gateway else {}
        return daemon.start(environment=environment) if start else daemon

    def name(self, daemon):
        return "hosts/" + (daemon.data / "name").read_text()

    def holder(self, daemon, job):
        """The host that works on the job; None as long as none does."""
        for host in daemon.json("hosts"):
            if job in [operation["operation"] for operation in host["operations"]]:
                return host["host"]
        return None
