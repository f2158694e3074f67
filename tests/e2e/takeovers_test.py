"""How late a host was to take a lost one's job, and what is not its fault."""

import unittest

from takeovers import LATE, TTL, Loss, Takeover, late_takeovers, proves_nothing, takeovers


def changes(*leases, name="operations/1", until=120.0):
    """Of a job: (when, holder) of each lease, None where it ended. `until`: when each lease was over."""
    rows = [{"name": name, "at": 0.0, "was_epoch": None, "epoch": 0, "holder": None, "was_done": None, "done": False}]
    for at, holder in leases:
        before, ends = rows[-1], holder is None
        rows.append(
            {
                "name": name,
                "at": at,
                "was_epoch": before["epoch"],
                "epoch": before["epoch"] + (not ends),
                "holder": before["holder"] if ends else holder,
                "was_until": until if before["holder"] else None,
                "was_done": before["done"],
                "done": ends,
            }
        )
    return rows


class TakeoversTest(unittest.TestCase):
    LOSS = Loss("h1", "kill a host", 100.0)

    def found(self, *leases, away=None, losses=(LOSS,), more=(), lag=0.0, until=100 + TTL):
        rows = [*changes(*leases, until=until), *more]
        return takeovers(
            lambda _: rows, losses, {"h1": [], "h2": [], "h3": [], None: []} | (away or {}), lambda begin, end: lag
        )

    def test_is_measured_from_the_loss_to_the_claim(self):
        [takeover] = self.found((90, "h1"), (121.5, "h2"), (130, None))
        self.assertEqual((takeover.job, takeover.by), ("operations/1", "h2"))
        self.assertAlmostEqual(takeover.took, 21.5)
        self.assertAlmostEqual(takeover.late, 1.5)
        self.assertEqual(late_takeovers([takeover]), [])

    def test_one_that_is_late_while_a_host_was_free_is_a_fault(self):
        [fault] = late_takeovers(self.found((90, "h1"), (100 + TTL + LATE + 1, "h2")))
        self.assertEqual(
            fault,
            "operations/1: h2 took it 26.0 s after h1 was lost (kill a host), "
            "6.0 s after its lease while a host was free",
        )

    def test_is_late_from_the_end_of_the_lease_which_was_renewed_before_the_loss(self):
        [takeover] = self.found((90, "h1"), (121.5, "h2"), until=115.5)
        self.assertAlmostEqual(takeover.late, 6.0)
        self.assertEqual(len(late_takeovers([takeover])), 1)

    def test_what_the_host_took_up_again_or_had_ended_is_none(self):
        self.assertEqual(self.found((90, "h1"), (105, "h1")), [])
        self.assertEqual(self.found((90, "h1"), (95, None)), [])
        self.assertEqual(self.found((90, "h2"), (105, "h3")), [])

    def test_of_two_losses_the_last_counts(self):
        [takeover] = self.found((90, "h1"), (131, "h2"), losses=(self.LOSS, Loss("h1", "stop a host", 110.0)))
        self.assertEqual((takeover.loss.kind, takeover.took), ("stop a host", 21.0))

    def test_nobody_is_late_while_no_host_is_there(self):
        away = {"h2": [(110, 128)], "h3": [(115, 140)]}
        self.assertEqual([t.late for t in self.found((90, "h1"), (129, "h2"), away=away)], [1.0])

    def test_nobody_is_late_while_all_have_as_many_jobs_as_they_take(self):
        jobs = (("b", 80, "h2", 127), ("c", 80, "h3", 150))
        more = [change for name, at, host, end in jobs for change in changes((at, host), (end, None), name=name)]
        self.assertEqual([t.late for t in self.found((90, "h1"), (129, "h2"), more=more)], [2.0])

    def test_a_host_that_takes_the_next_job_has_no_room_meanwhile(self):
        jobs = (("b", 80, "h2", 121), ("c", 121, "h2", 128), ("d", 80, "h3", 150))
        more = [change for name, at, host, end in jobs for change in changes((at, host), (end, None), name=name)]
        self.assertEqual([t.late for t in self.found((90, "h1"), (129, "h2"), more=more)], [1.0])

    def test_nobody_is_late_while_the_database_is_away(self):
        self.assertEqual([t.late for t in self.found((90, "h1"), (129, "h2"), away={None: [(118, 126)]})], [3.0])

    def test_what_the_machine_kept_everybody_waiting_is_left_out(self):
        self.assertEqual([t.late for t in self.found((90, "h1"), (129, "h2"), lag=8.5)], [0.5])

    def test_a_run_in_which_nothing_was_taken_over_or_refused_proves_nothing(self):
        cut_off = Takeover("operations/1", Loss("h1", "cut a host off", 1.0), "h2", took=21.0, late=1.0)
        killed = Takeover("operations/1", self.LOSS, "h2", took=21.0, late=1.0)
        self.assertEqual(proves_nothing([], [], refused=0, stopped=0), [])
        self.assertEqual(
            proves_nothing([], [self.LOSS], refused=0, stopped=0),
            ["1 hosts were lost, and none of their jobs was taken over"],
        )
        self.assertEqual(proves_nothing([killed], [self.LOSS], refused=0, stopped=0), [])
        self.assertEqual(
            proves_nothing([cut_off], [cut_off.loss], refused=0, stopped=0),
            ["1 jobs were taken from hosts that were cut off, and no write was refused"],
        )
        self.assertEqual(proves_nothing([cut_off], [cut_off.loss], refused=0, stopped=1), [])
        self.assertEqual(len(proves_nothing([cut_off] * 10, [cut_off.loss], refused=0, stopped=1)), 1)
        self.assertEqual(proves_nothing([cut_off] * 10, [cut_off.loss], refused=1, stopped=1), [])


if __name__ == "__main__":
    unittest.main()
