"""What befalls a fleet, and what heals it: by their names in EVENTS."""

import collections
import contextlib
import random
import threading
import time

import takeovers
from harness import PATIENCE, wait_until
from postgresql_proxy import Drop

HOUR = 3600
LONGER_THAN_A_LEASE = (takeovers.TTL + 3, takeovers.TTL + 8)  # and shorter than a statement's 30 s
SHORTER = (0, 5)

# How often each happens, of a hundred.
EVENTS = {
    "kill a host": 11,
    "stop a host": 5,
    "cut a host off": 4,
    "kill the database": 8,
    "drop a commit": 27,
    "drop a claim": 11,
    "drop a renewal": 6,
    "set a clock": 13,
    "drain a host": 15,
}
AHEAD = 20  # of what is to happen: what can happen now may go first
LAST_DROPS = 60  # seconds: in which the statements come that connections are still to be dropped at

# How a statement begins whose connection is dropped.
STATEMENTS = {
    "drop a commit": "COMMIT",
    "drop a claim": "WITH claimed",
    "drop a renewal": "UPDATE jobs SET lease_until",
}


class Events:
    """`down`: how long a killed host stays away, a random one of these times. `note` keeps a line of what happens."""

    def __init__(self, fleet, seed, note, down=(SHORTER, LONGER_THAN_A_LEASE)):
        self.fleet = fleet
        self.random = random.Random(seed)
        self.note = note
        self.down = down
        self.happened = collections.Counter()
        self.losses = []
        self._due = []  # (when, what heals), of what has happened
        self._starts = []  # threads that start daemons
        self._server_up = True
        self._over = threading.Event()

    def happen(self, pending, end, patience=PATIENCE):
        """One of these, and takes it from the list: the first for which there is somebody to whom it can happen. None
        from `end` on, a moment of time.monotonic()."""
        give_up = time.monotonic() + patience
        while time.monotonic() < end:
            for kind in dict.fromkeys(pending[:AHEAD]):
                if self._happens(kind):
                    self.happened[kind] += 1
                    pending.remove(kind)
                    return
            if time.monotonic() > give_up:
                kinds = ", ".join(dict.fromkeys(pending[:AHEAD]))
                raise AssertionError(f"waited {patience} s for one to whom any of these can happen: {kinds}")
            self.live(0.2)

    def live(self, seconds):
        """Heals what is due meanwhile."""
        end = time.monotonic() + seconds
        while True:
            for one in [one for one in self._due if one[0] <= time.monotonic()]:
                self._due.remove(one)
                one[1]()
            if time.monotonic() >= end:
                return
            time.sleep(0.05)

    def pass_over(self):
        """Everything that has happened is over, but for the starts of daemons."""
        wait_until("all to be healed", lambda: self.live(0.5) or not self._due)

    def heal(self, drops=LAST_DROPS):
        """Nothing is wrong with any host any more. `drops`: seconds, for what is still to be dropped."""
        self.pass_over()
        for start in self._starts:
            start.join()
        with contextlib.suppress(AssertionError):  # what never comes is told by never_dropped()
            waiting = [member.proxy for member in self.fleet.members]
            wait_until("drops", lambda: not any(proxy.waiting for proxy in waiting), drops)
        for member in self.fleet.members:
            member.proxy.forget()
            member.clock.set(0)
            if member.state != "up":
                raise AssertionError(f"{member.name} did not come back: it is {member.state}")

    def close(self):
        """Nobody starts any more, and nobody waits for one who stands still."""
        self._over.set()
        for member in self.fleet.members:
            member.proxy.thaw()
            if member.state == "standing still":
                member.go_on()
        for start in self._starts:
            start.join()

    def _happens(self, kind):
        """False when there is nobody now to whom it can happen."""
        if kind == "kill the database":
            return self._kill_database()
        if kind.startswith("drop "):
            return self._drop(kind)
        if kind == "set a clock":
            return self._set_clock()
        if kind == "drain a host":
            return self._drain()
        return self._strike(kind)

    def _strike(self, kind):
        member = self._victim(gateways=kind == "kill a host")
        if member is None:
            return False
        self.note(f"{kind}: {member.name}")
        if not member.gateway:
            self.losses.append(takeovers.Loss(member.holder, kind, time.time()))
        if kind == "kill a host":
            member.strike()
            lasts = self.random.uniform(*self.random.choice(self.down))
            self._after(lasts, lambda: self._bring_up(member))
        elif kind == "stop a host":
            member.stand_still()
            self._after(self.random.uniform(*LONGER_THAN_A_LEASE), lambda: self._back(member, member.go_on))
        else:
            member.cut_off()
            self._after(self.random.uniform(*LONGER_THAN_A_LEASE), lambda: self._back(member, member.connect))
        return True

    def _victim(self, gateways):
        """One that is up, preferably at work; of hosts and of gateways one is left alone."""
        of_gateways = gateways and self.random.random() < 0.3
        up = [member for member in self.fleet.members if member.gateway == of_gateways and member.state == "up"]
        if len(up) < 2:
            return None
        if not of_gateways and self._server_up:
            working = {row["holder"] for row in self.fleet.server.rows("SELECT holder FROM jobs WHERE NOT done")}
            up = [member for member in up if member.holder in working] or up
        return self.random.choice(up)

    def _kill_database(self):
        if not self._server_up:
            return False
        self.note("kill the database")
        self._server_up = False
        self.fleet.kill_server()
        # One in four times for longer than hosts work on without a renewal.
        lasts = self.random.uniform(16, 22) if self.random.random() < 0.25 else self.random.uniform(0, 6)
        self._after(lasts, self._start_database)
        return True

    def _start_database(self):
        self.note("start the database")
        self.fleet.start_server()
        self._server_up = True

    def _drop(self, kind):
        able = self.fleet.members if kind == "drop a commit" else self.fleet.hosts
        able = [member for member in able if member.state == "up" and not member.proxy.waiting]
        if not able:
            return False
        member, when = self.random.choice(able), self.random.choice(list(Drop))
        self.note(f"{kind}: {member.name}, {when.value}")
        member.proxy.drop_at(STATEMENTS[kind], when)
        return True

    def _set_clock(self):
        member, seconds = self.random.choice(self.fleet.members), self.random.choice([-HOUR, 0, HOUR])
        if seconds == member.clock.off:
            return False
        self.note(f"set a clock: {member.name}, off by {seconds} s")
        member.clock.set(seconds)
        return True

    def _drain(self):
        gateway = self._gateway()
        able = [member for member in self.fleet.hosts if not member.draining]
        if gateway is None or len(able) < 2:
            return False
        member = self.random.choice(able)
        # Whatever the answer: it may be late, or lost.
        member.drain(True)
        self._after(self.random.uniform(1, 12), lambda: self._undrain(member))
        return self._tell("drain", member, gateway)

    def _gateway(self):
        """One that can be told; None when there is none now."""
        up = [gateway for gateway in self.fleet.gateways if gateway.state == "up"]
        return self.random.choice(up) if up and self._server_up else None

    def _tell(self, what, member, gateway):
        told = gateway.attune("--timeout=5s", "hosts", what, f"hosts/{member.holder}", check=False)
        self.note(f"{what} {member.name} by way of {gateway.name}: {told.returncode}")
        return told.returncode == 0

    def _undrain(self, member):
        gateway = self._gateway()
        if gateway is not None and self._tell("undrain", member, gateway):
            member.drain(False)
        else:
            self._after(1, lambda: self._undrain(member))

    def _bring_up(self, member):
        self.note(f"start {member.name}")
        start = threading.Thread(target=member.bring_up, args=(self._over,))
        start.start()
        self._starts.append(start)

    def _back(self, member, back):
        self.note(f"{member.name} is back")
        back()

    def _after(self, seconds, heal):
        self._due.append((time.monotonic() + seconds, heal))


def never_dropped(happened, dropped):
    """Kinds of events, of which there were some, though no connection was dropped at their statement. `dropped`: how
    many, by (statement, Drop)."""
    return [
        f"{happened[kind]} x {kind}, and no connection was dropped at {statement}"
        for kind, statement in STATEMENTS.items()
        if happened[kind] and not sum(count for (at, _), count in dropped.items() if at == statement)
    ]
