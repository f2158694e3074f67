"""Stands between a client of PostgreSQL and its server's Unix socket: freezes connections, or drops one at a statement.

It reads the protocol as far as it must: the type, the length and, of Parse and Query, the text of each message of the
client (https://www.postgresql.org/docs/15/protocol-message-formats.html). Clients must not ask for TLS.
"""

import asyncio
import collections
import enum
import struct
import threading

STARTUP = 196608  # protocol 3.0; other codes ask for something else first
READY = b"Z\0\0\0\5"  # of ReadyForQuery, before its one byte


class Drop(enum.Enum):
    """When the connection is dropped, and so what has become of the statement."""

    UNSENT = "before it was sent"  # it was never made
    SENT = "right after it was sent"  # nobody knows
    ANSWERED = "after it was answered"  # it was made, and the client does not know


class PostgresqlProxy:
    """Listens in `directory` as a server would; connection strings name that as host=."""

    def __init__(self, directory, server):
        self.directory = directory
        self._server = f"{server}/.s.PGSQL.5432"
        self._wanted = None  # (beginning of the statement, Drop)
        self.dropped = collections.Counter()  # by those
        self._loop = asyncio.new_event_loop()
        self._flows = asyncio.Event()
        self._flows.set()
        self._listener = self._loop.run_until_complete(
            asyncio.start_unix_server(self._serve, f"{directory}/.s.PGSQL.5432")
        )
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def freeze(self):
        """Nothing passes, and nothing is lost, until thaw()."""
        self._loop.call_soon_threadsafe(self._flows.clear)

    def thaw(self):
        self._loop.call_soon_threadsafe(self._flows.set)

    def drop_at(self, statement, when):
        """Drops the connection that next sends a statement which begins so; forgets an earlier wish."""
        self._wanted = (statement, when)

    def forget(self):
        self._wanted = None

    @property
    def waiting(self):
        """Whether the statement of the last drop_at() has not come yet."""
        return self._wanted is not None

    def close(self):
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end(self):
        self._listener.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _serve(self, client, to_client):
        writers = [to_client]
        try:
            await self._flows.wait()
            server, to_server = await asyncio.open_unix_connection(self._server)
            writers.append(to_server)
            connection = _Connection(self, client, to_client, server, to_server)
            both = [asyncio.ensure_future(way) for way in (connection.up(), connection.down())]
            try:
                await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in both:
                    way.cancel()
                await asyncio.gather(*both, return_exceptions=True)
        except (OSError, asyncio.CancelledError):
            pass  # the server is away, or the proxy ends: the client finds its connection closed
        finally:
            for writer in writers:
                writer.close()

    async def flowing(self):
        await self._flows.wait()

    def take(self, statement):
        """The Drop that was wished for a statement like this one; None: it may pass."""
        wanted = self._wanted
        if wanted is None or not statement.startswith(wanted[0].encode()):
            return None
        self._wanted = None
        self.dropped[wanted] += 1
        return wanted[1]


class _Connection:
    """Either way ends when the connection does."""

    def __init__(self, proxy, client, to_client, server, to_server):
        self._proxy = proxy
        self._client = client
        self._to_client = to_client
        self._server = server
        self._to_server = to_server
        self._hides_answer = False

    async def up(self):
        try:
            await self._start()
            dropping = None
            while True:
                head = await self._client.readexactly(5)
                body = await self._client.readexactly(struct.unpack("!I", head[1:])[0] - 4)
                if dropping is None and (statement := _statement(head[:1], body)) is not None:
                    dropping = self._proxy.take(statement)
                if dropping is Drop.UNSENT:
                    return
                ends = head[:1] in (b"S", b"Q")  # Sync, Query: the server answers
                self._hides_answer = dropping is Drop.ANSWERED
                await self._proxy.flowing()
                self._to_server.write(head + body)
                await self._to_server.drain()
                if ends and dropping is Drop.SENT:
                    return
        except (asyncio.IncompleteReadError, OSError):
            return

    async def _start(self):
        """Messages without a type, up to that which starts the session."""
        code = None
        while code != STARTUP:
            length = await self._client.readexactly(4)
            body = await self._client.readexactly(struct.unpack("!I", length)[0] - 4)
            code = struct.unpack("!I", body[:4])[0]
            await self._proxy.flowing()
            self._to_server.write(length + body)
            await self._to_server.drain()

    async def down(self):
        answer = b""  # the end of it, of one that is hidden
        try:
            while data := await self._server.read(1 << 16):
                await self._proxy.flowing()
                if not self._hides_answer:
                    self._to_client.write(data)
                    await self._to_client.drain()
                    continue
                answer = (answer + data)[-6:]
                if answer[:5] == READY:
                    return
        except OSError:
            return


def _statement(kind, body):
    """The text in a Parse or a Query message."""
    if kind == b"P":
        return body.split(b"\0", 2)[1]
    return body if kind == b"Q" else None
