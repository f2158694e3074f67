"""A fleet for tests: daemons on one PostgreSQL server, each behind a proxy of its own, with a wall clock of its own."""

import contextlib
import os
import pathlib
import re
import signal
import threading
import time

import fleet_audit
import postgresql
from harness import KERNELS, PATIENCE, TEST_FAMILIES, Daemon, WallClock, without_opencl
from postgresql_proxy import PostgresqlProxy

SETTLES = 6.0  # seconds: until a host that is back has said so to others, and asks for work


class Member(Daemon):
    """A host, or with `gateway` one without devices. What it logs goes to a file, over all its starts."""

    def __init__(self, directory, name, server, log, gateway=False):
        home = pathlib.Path(directory) / name
        home.mkdir()
        self.proxy = PostgresqlProxy(home, server.directory)
        store = f"--store=postgresql://attune@/postgres?host={home}&application_name={name}"
        super().__init__(home, (KERNELS, TEST_FAMILIES), [store, "--trial_timeout=10m", "--compile_workers=1"])
        self.name = name
        self.gateway = gateway
        self.file = pathlib.Path(log)
        self.state = "down"  # or starting, up, standing still, cut off
        self.draining = False
        self._away_since = 0.0
        self.away = []  # times in which it takes no work: (begin, end)
        self.clock = WallClock(home)

    @property
    def holder(self):
        return (self.data / "name").read_text()

    def environment(self):
        return self.clock.environment | (without_opencl(self.directory) if self.gateway else {})

    def _read(self):
        with self.process.stderr as lines, open(self.file, "a", encoding="utf-8", buffering=1) as kept:
            for line in lines:
                kept.write(line)
                if not self._serving.is_set():
                    self.log += line
                if self._until in line:
                    self._serving.set()

    def logged(self):
        return self.file.read_text(encoding="utf-8") if self.file.exists() else ""

    def bring_up(self, over=None):
        """Starts it as a service manager does: again and again, while the database is away, until `over`."""
        self._become("starting")
        end = time.monotonic() + PATIENCE
        while not self._starts():
            if (over is not None and over.is_set()) or time.monotonic() > end:
                return
        self._become("up")

    def _starts(self):
        try:
            self.start(environment=self.environment())
        except AssertionError:
            return False
        return True

    def _become(self, state=None, draining=None):
        worked = self.state == "up" and not self.draining
        # Only what is given: another thread may set the other.
        if state is not None:
            self.state = state
        if draining is not None:
            self.draining = draining
        works = self.state == "up" and not self.draining
        if worked and not works:
            self._away_since = time.time()
        if works and not worked:
            self.away.append((self._away_since, time.time() + SETTLES))

    def drain(self, draining):
        """Someone has told the fleet."""
        self._become(draining=draining)

    def strike(self):
        self._become("down")
        self.kill()

    def stand_still(self):
        self._become("standing still")
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)
        self._become("up")

    def cut_off(self):
        self._become("cut off")
        self.proxy.freeze()

    def connect(self):
        self.proxy.thaw()
        self._become("up")

    def close(self):
        self.proxy.thaw()
        if self.process is not None and self.process.poll() is None:
            self.kill()
        self.proxy.close()


class Fleet:
    def __init__(self, directory, hosts, gateways):
        self.directory = pathlib.Path(directory)
        self.logs = self.directory / "logs"
        self.logs.mkdir()
        self.server = postgresql.PostgresqlServer()
        self.server_away = []
        self.members = []
        try:
            for name in [f"gateway{n + 1}" for n in range(gateways)] + [f"host{n + 1}" for n in range(hosts)]:
                log = self.logs / f"{name}.log"
                self.members.append(Member(directory, name, self.server, log, name.startswith("gateway")))
        except BaseException:
            self.close()
            raise

    @property
    def hosts(self):
        return [member for member in self.members if not member.gateway]

    @property
    def gateways(self):
        return [member for member in self.members if member.gateway]

    def start(self):
        """The first makes the tables; then all others at once."""
        first, *others = self.members
        first.bring_up()
        self.server.execute(fleet_audit.SCHEMA)
        starts = [threading.Thread(target=member.bring_up) for member in others]
        for start in starts:
            start.start()
        for start in starts:
            start.join()
        for member in self.members:
            if member.state != "up":
                raise AssertionError(f"{member.name} did not start:\n{member.logged()}")
            self.server.execute(f"INSERT INTO audit_members VALUES ('{member.name}', '{member.holder}')")

    def kill_server(self):
        self._server_since = time.time()
        self.server.kill()

    def start_server(self):
        self.server.start()
        # Connections are made anew, after pauses of up to 0.5 s; a claim comes every 2 s.
        self.server_away.append((self._server_since, time.time() + 3))

    def counted(self, event):
        """How often members logged this event; of many in a row the log says how many it left out."""
        count = 0
        for member in self.members:
            for line in re.findall(rf".*{re.escape(event)}.*", member.logged()):
                if "repeated=" in line:  # says that lines are left out from now on
                    continue
                left_out = re.search(r"left_out=(\d+)", line)
                count += 1 + (int(left_out[1]) if left_out else 0)
        return count

    def close(self):
        for member in self.members:
            with contextlib.suppress(ProcessLookupError):
                member.close()
        with contextlib.suppress(OSError):
            os.replace(self.server.directory / "server.log", self.logs / "postgresql.log")
        self.server.close()
