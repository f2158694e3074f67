"""A server with canned answers, in the process, and a clock that only sleeping moves."""

from __future__ import annotations

import threading
from concurrent import futures

import grpc
from google.protobuf import any_pb2

from attune import api
from attune.clock import Clock
from attune.problem import Problem

PROBLEM = "b2.h8.q512.d64.f16"
VARIANT = {
    "family": "attention_wmma",
    "parameters": [{"name": "BLOCK_M", "value": 64}],
    "text": "attention_wmma:BLOCK_M=64",
}
TIMING = {"median_us": 41.2, "low_us": 40.9, "high_us": 41.5, "samples": 30, "settled": True}
OPERATION = "operations/7"


def message(kind, /, **fields):
    return api.message(kind)(**fields)


def problem():
    return Problem.parse(PROBLEM).to_message()


def answer(**fields):
    """The GetBestResponse for PROBLEM."""
    known = {"problem": problem(), "device_id": "cuda:0", "provenance": 1, "variant": VARIANT, "timing": TIMING}
    return message("GetBestResponse", **{**known, "trial": "trials/1", **fields})


def trial(name="trials/1", **fields):
    """A Trial of PROBLEM, all right."""
    known = {"name": name, "problem": problem(), "device_id": "cuda:0", "variant": VARIANT, "verdict": 1, "policy": 1}
    return message("Trial", **{**known, "timing": TIMING, **fields})


def operation(state, **fields):
    """The tuning of PROBLEM: QUEUED 1, RUNNING 2, SUCCEEDED 3, FAILED 4, CANCELLED 5."""
    return message("Operation", name=OPERATION, title=f"tune {PROBLEM}", state=state, done=state > 2, **fields)


def tuned():
    return operation(3, tune={"promoted": True, "decision": "there was no incumbent", "winner": trial()})


class FakeClock(Clock):
    """Sleeping takes no time, but moves it. `sleeps`: how long each was, in seconds."""

    def __init__(self):
        self.seconds = 1_000.0
        self.sleeps = []

    def now(self):
        return self.seconds

    def wall(self):
        return 1_795_000_000 + self.seconds

    def sleep(self, seconds):
        self.sleeps.append(seconds)
        self.seconds += seconds

    async def sleep_async(self, seconds):
        self.sleep(seconds)


class FakeServer:
    """Answers each method with what `responses` has for it: a message, a list of them to stream, or a function of
    the request; everything else is NOT_FOUND. In a list, a status code breaks the stream, and a threading.Event waits
    until the client is gone and is then set. `requests` are all it was asked: (method, request); `times_left` the
    seconds each had until its deadline; `authorizations` what each brought for it, or None. With `credentials` it
    speaks TLS, at localhost with a port of its own choice.
    """

    def __init__(self, address, credentials=None):
        self.address = address
        self.requests = []
        self.times_left = []
        self.authorizations = []
        self.responses = {
            "GetBest": answer(),
            "Tune": operation(1),
            "GetOperation": operation(2),
            "WatchOperation": [operation(2), tuned()],
            "Ping": message("PingResponse"),
        }
        self._failures = []
        self._lock = threading.Lock()
        self._server = grpc.server(futures.ThreadPoolExecutor(8))
        for service in api.SERVICES:
            handlers = {
                name: self._handler(name, method)
                for name, method in api.METHODS.items()
                if method.path == f"/{service}/{name}"
            }
            self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))
        if credentials is None:
            self._server.add_insecure_port(address)
        else:
            self.address = f"localhost:{self._server.add_secure_port('localhost:0', credentials)}"
        self._server.start()

    def fail_next(self, calls, code, details="planned", trailers=()):
        """The next calls, whatever their method, are answered so."""
        self._failures += [(code, details, trailers)] * calls

    def asked(self, method):
        """The requests of `method` so far."""
        return [request for name, request in self.requests if name == method]

    def stop(self):
        self._server.stop(None).wait()

    def _handler(self, name, method):
        kind = grpc.unary_stream_rpc_method_handler if method.streams else grpc.unary_unary_rpc_method_handler
        behaviour = self._stream if method.streams else self._answer
        return kind(
            lambda request, context: behaviour(name, request, context),
            request_deserializer=method.request.FromString,
            response_serializer=method.response.SerializeToString,
        )

    def _enter(self, name, request, context):
        with self._lock:
            self.requests.append((name, request))
            self.times_left.append(context.time_remaining())
            self.authorizations.append(dict(context.invocation_metadata()).get("authorization"))
            failure = self._failures.pop(0) if self._failures else None
        if failure:
            code, details, trailers = failure
            context.set_trailing_metadata(trailers)
            context.abort(code, details)
        response = self.responses.get(name)
        if response is None:
            context.abort(grpc.StatusCode.NOT_FOUND, f"{name} has nothing")
        return response(request) if callable(response) else response

    def _answer(self, name, request, context):
        return self._enter(name, request, context)

    def _stream(self, name, request, context):
        changes = self._enter(name, request, context)
        for change in changes:
            if isinstance(change, threading.Event):
                context.add_callback(change.set)
        for change in changes:
            if isinstance(change, grpc.StatusCode):
                context.abort(change, "the stream breaks")
            if isinstance(change, threading.Event):
                change.wait(60)
            else:
                yield change


def error_info(reason, **metadata):
    """The trailers in which a google.rpc.ErrorInfo travels."""
    info = message("google.rpc.ErrorInfo", reason=reason, domain="attune.dev", metadata=metadata)
    packed = any_pb2.Any()
    packed.Pack(info)
    status = message("google.rpc.Status", code=3)
    status.details.add(type_url=packed.type_url, value=packed.value)
    return (("grpc-status-details-bin", status.SerializeToString()),)
