"""The parts of chaos_fleet.py, with stand-ins for the fleet: none waits for ever, or hides what it should tell."""

import collections
import subprocess
import time
import types
import unittest

from chaos_fleet import Chaos
from fleet_clients import Clients
from fleet_events import Events, never_dropped
from fleet_members import Fleet, Member
from harness import Daemon
from postgresql_proxy import Drop

NEVER = float("inf")


def answering(code=0, lines=""):
    """`attune` of a daemon, which answers everything so. The first of its arguments that is no flag is in `asked`."""

    def attune(*arguments, check=True):
        attune.asked.append(next(word for word in arguments if not word.startswith("-")))
        return subprocess.CompletedProcess(arguments, code, stdout=lines)

    attune.asked = []
    return attune


class Proxy:
    """Drops its connection after it was asked so often whether it still waits."""

    def __init__(self, asks=0):
        self.asks = asks
        self.forgot_with = None

    @property
    def waiting(self):
        self.asks -= 1
        return self.asks >= 0

    def forget(self):
        self.forgot_with = self.asks


class Host:
    def __init__(self, name, gateway=False, code=0):
        self.name = self.holder = name
        self.gateway = gateway
        self.state = "up"
        self.draining = False
        self.attune = answering(code)
        self.proxy = Proxy()
        self.clock = types.SimpleNamespace(off=0, set=lambda seconds: None)

    def drain(self, draining):
        self.draining = draining


class EventsTest(unittest.TestCase):
    def events(self, *members):
        fleet = types.SimpleNamespace(members=members)
        fleet.hosts = [member for member in members if not member.gateway]
        fleet.gateways = [member for member in members if member.gateway]
        return Events(fleet, 1, lambda words: None)

    def test_what_can_happen_to_nobody_is_named(self):
        pending = ["kill a host", "drain a host", "kill a host"]
        with self.assertRaisesRegex(AssertionError, "waited 0.3 s for one .*: kill a host, drain a host$"):
            self.events().happen(pending, NEVER, patience=0.3)

    def test_nothing_happens_after_the_end(self):
        pending = ["set a clock"]
        events = self.events(Host("one"))
        events.happen(pending, time.monotonic() - 1)
        self.assertEqual((pending, events.happened.total()), (["set a clock"], 0))
        events = self.events()
        begin = time.monotonic()
        events.happen(["kill a host"], begin + 0.3)  # to nobody, until then
        self.assertLess(time.monotonic(), begin + 10)

    def test_a_drain_that_no_gateway_can_be_told_does_not_happen(self):
        gateway, *hosts = Host("gateway", gateway=True), Host("one"), Host("two")
        gateway.state = "down"
        events = self.events(gateway, *hosts)
        self.assertFalse(events._drain())
        self.assertEqual(([host.draining for host in hosts], events._due), ([False, False], []))

    def test_a_drain_without_an_answer_may_have_been_one(self):
        gateway, *hosts = Host("gateway", gateway=True, code=4), Host("one"), Host("two")
        events = self.events(gateway, *hosts)
        self.assertFalse(events._drain())
        self.assertEqual(sum(host.draining for host in hosts), 1)
        for _ in range(3):  # undrains that are not answered follow each other
            self.assertFalse(events._drain(), "the other is left alone")
            [(_, undrain)] = events._due
            events._due.clear()
            undrain()
        gateway.attune = answering()
        [(_, undrain)] = events._due
        undrain()
        self.assertEqual(sum(host.draining for host in hosts), 0)

    def test_it_is_healed_when_what_was_to_be_dropped_is_dropped(self):
        host = Host("one")
        host.proxy = Proxy(asks=3)
        self.events(host).heal()
        self.assertLess(host.proxy.forgot_with, 0)
        host.proxy = Proxy(asks=1 << 30)  # for ever
        self.events(host).heal(drops=0.1)
        self.assertGreater(host.proxy.forgot_with, 0)

    def test_a_kind_of_drop_that_never_came_is_told(self):
        happened = collections.Counter({"drop a commit": 3, "drop a claim": 2, "kill a host": 1})
        dropped = collections.Counter({("COMMIT", Drop.SENT): 1, ("WITH claimed", Drop.UNSENT): 1})
        self.assertEqual(never_dropped(happened, dropped), [])
        del dropped["WITH claimed", Drop.UNSENT]
        self.assertEqual(
            never_dropped(happened, dropped), ["2 x drop a claim, and no connection was dropped at WITH claimed"]
        )


class ClientsTest(unittest.TestCase):
    def test_what_ends_a_client_is_a_fault(self):
        gateway = types.SimpleNamespace(attune=answering(lines="no JSON"))
        clients = Clients([gateway], 1)
        clients.start()
        for thread in clients._threads[::2]:  # those that ask, and list
            thread.join(30)
        clients.close()
        self.assertEqual(len(clients.faults), 2)
        for fault in clients.faults:
            self.assertRegex(fault, "(?s)^a client ended: .*JSONDecodeError")

    def test_nothing_is_asked_for_while_so_many_jobs_are_unfinished(self):
        for unfinished, asked in ((2, ["jobs"]), (3, ["jobs", "pthread"])):
            gateway = types.SimpleNamespace(attune=answering(lines='{"operation": "operations/1"}\n' * 2))
            clients = Clients([gateway], 1, unfinished=unfinished)
            clients._ask(NoWatches())
            self.assertEqual(gateway.attune.asked, asked)

    def test_all_watches_have_one_deadline(self):
        clients = Clients([], 1)
        clients._watches = [
            types.SimpleNamespace(job=f"operations/{n}", ended=lambda seconds=0: time.sleep(seconds)) for n in range(5)
        ]
        begin = time.monotonic()
        clients.end_watches(0.5)
        self.assertLess(time.monotonic() - begin, 1.5)
        self.assertEqual(len(clients.watched), 5)
        self.assertEqual(clients.watched[0], ("operations/0", "nothing, 0.5 s after the last had ended"))


class NoWatches:
    """Of random numbers the last, so that nothing more is done with a job."""

    def choice(self, among):
        return among[-1]

    def random(self):
        return 0.99

    def randint(self, _, last):
        return last


class MembersTest(unittest.TestCase):
    def test_a_daemon_that_ends_instead_of_serving_has_not_started(self):
        class Ending(Daemon):
            def command(self):
                return ["sh", "-c", "exec 2>&-; sleep 0.5"]

        with self.assertRaisesRegex(AssertionError, "the daemon did not start"):
            Ending("/tmp").start()

    def test_only_what_is_given_is_set(self):
        class Told(Member):
            def __init__(self):
                self.__dict__.update(state="up", draining=False, away=[], told=[])

            def __setattr__(self, name, value):
                self.told.append(name)
                super().__setattr__(name, value)

        member = Told()
        member.drain(True)
        self.assertNotIn("state", member.told)
        member.told.clear()
        member._become("down")
        self.assertNotIn("draining", member.told)
        self.assertEqual((member.state, member.draining), ("down", True))

    def test_counts_what_a_log_has_left_out(self):
        log = "\n".join(
            [
                "W a write was refused job=1",
                "W log lines are left out repeated='a write was refused'",
                "W a write was refused job=2 left_out=5",
                "W something else",
            ]
        )
        fleet = types.SimpleNamespace(members=[types.SimpleNamespace(logged=lambda: log)])
        self.assertEqual(Fleet.counted(fleet, "a write was refused"), 7)


class ChaosTest(unittest.TestCase):
    def test_a_run_in_which_nothing_was_done_is_a_fault(self):
        chaos = types.SimpleNamespace(counts={"states": collections.Counter(SUCCEEDED=1), "incumbents": 1})
        chaos.clients = types.SimpleNamespace(seen={"trials/1": ()}, pairs=[()])
        self.assertEqual(Chaos._nothing_done(chaos), [])
        chaos.counts = {"states": collections.Counter(CANCELLED=1), "incumbents": 0}
        chaos.clients = types.SimpleNamespace(seen={}, pairs=[])
        self.assertEqual(
            Chaos._nothing_done(chaos),
            [
                "no job SUCCEEDED",
                "no promotion was made",
                "no trial was listed meanwhile",
                "no equal request was answered by both gateways",
            ],
        )

    def test_a_member_that_does_not_answer_has_no_answer(self):
        def silent(*_, check):
            self.assertFalse(check)
            return []

        answer = {"variant": "f:A=1", "provenance": "EXACT"}
        members = [
            types.SimpleNamespace(name="one", json=lambda *_, check: [answer]),
            types.SimpleNamespace(name="two", json=silent),
        ]
        answers = Chaos._answers(types.SimpleNamespace(fleet=types.SimpleNamespace(members=members)))
        self.assertEqual({told for (name, _), told in answers.items() if name == "one"}, {("f:A=1", "EXACT")})
        self.assertEqual({told for (name, _), told in answers.items() if name == "two"}, {(None, "no answer")})


if __name__ == "__main__":
    unittest.main()
