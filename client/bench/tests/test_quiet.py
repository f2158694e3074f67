from __future__ import annotations

import pytest
from fake import PROBLEM, message, operation

from attune_bench.error import BenchError
from attune_bench.quiet import idle_daemon


def operations(*some):
    return message("ListOperationsResponse", operations=list(some))


def test_an_idle_daemon_may_go_on_running(server):
    server.responses["ListOperations"] = lambda request: operations(*([] if request.active_only else [operation(3)]))
    with idle_daemon(server.address):
        pass


def test_a_daemon_at_work_is_refused_with_what_it_does(server):
    server.responses["ListOperations"] = operations(operation(2))
    with pytest.raises(BenchError, match=f"at work, .*: tune {PROBLEM}"), idle_daemon(server.address):
        pytest.fail("the block was entered")


def test_work_that_began_while_timing_is_named_afterwards(server):
    server.responses["ListOperations"] = operations()
    with pytest.raises(BenchError, match=f"do not trust this run: tune {PROBLEM}"), idle_daemon(server.address):
        server.responses["ListOperations"] = operations(operation(3))
