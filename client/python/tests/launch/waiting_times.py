"""What a daemon in trouble costs the calls of attention: a table, beside calls that have nobody to ask.

    python3 waiting_times.py [--threads 8] [--shapes 1000] [--rounds 3]

Needs torch, but no GPU: CPU tensors pass for a GPU's, launches and SDPA do nothing, so that what is timed is attune's
own part of a call. Each thread calls every shape once, a millisecond apart as a model's layers do. The daemon is
another process:

    asks nobody    the same calls with nobody to ask: what the machine itself makes of them
    blackholed     connections are made, and nobody ever says anything
    refused        nobody listens
    slow           every answer takes a second
    killed         answers at once; it is killed in the middle of the calls
    rolled back    answers at once, and serves something else every second
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import itertools
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

SERVER = """
import sys, threading, time
sys.path.insert(0, sys.argv[1])
from fake import FakeServer, answer, message
served = lambda: int(time.monotonic()) if sys.argv[4] == "changing" else 1
def best(request):
    time.sleep(float(sys.argv[3]))
    return answer(problem=request.problem, artifact_sha256=str(served()).encode())
server = FakeServer(sys.argv[2])
server.responses["GetBest"] = best
server.responses["ListIncumbents"] = lambda request: message(
    "ListIncumbentsResponse", incumbents=[{"name": f"incumbents/{served()}"}]
)
print("serving", flush=True)
threading.Event().wait()
"""


@contextlib.contextmanager
def daemon(address: str, delay: float = 0.0, serves: str = "the same") -> Iterator[subprocess.Popen]:
    command = [sys.executable, "-c", SERVER, str(HERE.parent), address, str(delay), serves]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield process
        finally:
            process.kill()


def prepare() -> None:
    """Has launches and SDPA do nothing, and CPU tensors pass for a GPU's."""
    from fake_service import EveryModule, FakeKernel

    from attune.background import kernel_cache, service
    from attune.torch import direct, dispatch, problem_of_tensors

    problem_of_tensors.on_one_gpu = lambda *tensors: True
    dispatch.current_stream = direct.current_stream = lambda device: 5
    dispatch.by_torch = lambda query, *others, **options: query
    kernel_cache.load = lambda answer, device: FakeKernel(answer, Nothing())
    service.modules = EveryModule


class Nothing(list):
    def append(self, item: object) -> None:
        pass


def times(threads: int, shapes: int, halfway: Callable[[], None] = lambda: None) -> list[float]:
    """Milliseconds of every call of every thread."""
    import torch

    import attune

    tensors = [torch.zeros(1, 1, keys, 64, dtype=torch.float16) for keys in range(1, shapes + 1)]
    query = torch.zeros(1, 1, 1, 64, dtype=torch.float16)
    found: list[list[float]] = [[] for _ in range(threads)]
    together = threading.Barrier(threads)

    def work(mine: list[float]) -> None:
        together.wait()
        for number, kv in enumerate(tensors):
            if mine is found[0] and number == shapes // 2:
                halfway()
            start = time.perf_counter_ns()
            attune.attention(query, kv, kv)
            mine.append((time.perf_counter_ns() - start) / 1e6)
            time.sleep(0.001)

    running = [threading.Thread(target=work, args=(mine,)) for mine in found]
    gc.collect()
    gc.disable()  # a collection takes longer than a call, whoever's turn it is
    with torch.no_grad():
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
    gc.enable()
    return list(itertools.chain(*found))


@contextlib.contextmanager
def asking(address: str, **options: float) -> Iterator[None]:
    import attune

    with attune.Client(address) as client:
        attune.configure(client, device="cuda:0", never_slower=False, **options)
        yield
        attune.refresh()


def rounds(threads: int, shapes: int, folder: str) -> Iterator[tuple[str, list[float]]]:
    """The times under each condition, one after the other."""
    from attune.background.kernel_cache import KernelCache

    numbers = itertools.count()

    def path() -> str:
        return f"unix:{folder}/{next(numbers)}.sock"

    ask, KernelCache._ask_if_due = KernelCache._ask_if_due, lambda self, entry: None
    with asking(path()):
        found = times(threads, shapes)
    KernelCache._ask_if_due = ask
    yield "asks nobody", found
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(128)
        with asking(f"127.0.0.1:{silent.getsockname()[1]}"):
            found = times(threads, shapes)
    yield "blackholed", found
    with asking(path()):
        yield "refused", times(threads, shapes)
    with daemon(address := path(), delay=1.0), asking(address):
        yield "slow", times(threads, shapes)
    with daemon(address := path()) as process, asking(address):
        yield "killed", times(threads, shapes, process.kill)
    with daemon(address := path(), serves="changing"), asking(address, revalidate=1.0):
        yield "rolled back", times(threads, shapes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--shapes", type=int, default=1000, help="new ones")
    parser.add_argument("--rounds", type=int, default=3, help="of all conditions")
    arguments = parser.parse_args()
    prepare()
    found: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(arguments.rounds):
            for name, of_calls in rounds(arguments.threads, arguments.shapes, folder):
                found.setdefault(name, []).extend(of_calls)
    print(f"{'ms a call':14}{'calls':>8}{'median':>9}{'p99':>9}{'p99.9':>9}{'max':>9}{'over 1 ms':>11}")
    for name, of_calls in found.items():
        parts = statistics.quantiles(of_calls, n=1000)
        over = sum(one > 1 for one in of_calls)
        figures = "".join(f"{one:9.3f}" for one in (parts[499], parts[989], parts[998], max(of_calls)))
        print(f"{name:14}{len(of_calls):8}{figures}{over:11}")


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore")
    main()
