"""The HTTP clients of the bench, a process of its own: `python -m ductor.bench.load`, a job on stdin, JSON on stdout.

No Django and no HTTP library here: on a machine of two cores whatever the clients spend is missing to the server.
"""

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass

STARTED = 201
ANSWER_SECONDS = 30.0
_HEAD_END = b"\r\n\r\n"
_LENGTH = b"content-length:"


@dataclass(frozen=True, slots=True)
class Job:
    """What to send: `body` to `path`, by the `keys` in turn, over `connections` that are kept alive.

    Attributes:
        seconds: how long to go on; the requests under way then are still awaited and counted.
        rate: requests a second by the clock, whatever the answers take; 0 sends the next one when one is answered.
        most: no more requests than so many.
    """

    port: int
    path: str
    body: str
    keys: Sequence[str]
    connections: int
    seconds: float
    rate: float = 0.0
    most: int = 100_000


@dataclass(frozen=True, slots=True)
class Load:
    """What came of a job; `latencies` in seconds, of a paced request from the moment it was due."""

    started: int
    refused: int
    seconds: float
    latencies: list[float]


class Line(asyncio.Protocol):
    """One connection with at most one request under way."""

    def __init__(self) -> None:
        self._seen = b""
        self._answer: asyncio.Future[int] | None = None
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._seen += data
        head, end, body = self._seen.partition(_HEAD_END)
        if not end or self._answer is None or len(body) < _length(head):
            return
        self._seen = b""
        self._answer.set_result(int(head[9:12]))

    def connection_lost(self, exc: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionError("the server closed the connection"))

    async def send(self, request: bytes) -> int:
        """Send a request and return the status of its answer, once that has come whole."""
        assert self._transport is not None
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        async with asyncio.timeout(ANSWER_SECONDS):
            return await self._answer


def _length(head: bytes) -> int:
    lower = head.lower()
    start = lower.index(_LENGTH) + len(_LENGTH)
    return int(lower[start:].split(b"\r\n", 1)[0])


def requests_of(job: Job) -> list[bytes]:
    """Return one whole request a key."""
    body = job.body.encode()
    head = f"POST {job.path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return [
        f"{head}Authorization: Bearer {key}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body for key in job.keys
    ]


async def run(job: Job) -> Load:
    """Do a job."""
    loop = asyncio.get_running_loop()
    lines = [(await loop.create_connection(Line, "127.0.0.1", job.port))[1] for _ in range(job.connections)]
    requests, answers = requests_of(job), list[int]()
    latencies: list[float] = []
    sent = 0

    async def send(line: Line, due: float) -> None:
        nonlocal sent
        request = requests[sent % len(requests)]
        sent += 1
        answers.append(await line.send(request))
        latencies.append(time.perf_counter() - due)

    begun = time.perf_counter()
    drive = _paced if job.rate else _unpaced
    await drive(job, lines, send, begun)
    elapsed = time.perf_counter() - begun
    started = answers.count(STARTED)
    return Load(started, len(answers) - started, elapsed, latencies)


Send = Callable[[Line, float], Awaitable[None]]


async def _unpaced(job: Job, lines: Sequence[Line], send: Send, begun: float) -> None:
    left = job.most

    async def client(line: Line) -> None:
        nonlocal left
        while left > 0 and (now := time.perf_counter()) < begun + job.seconds:
            left -= 1
            await send(line, now)

    await asyncio.gather(*(client(line) for line in lines))


async def _paced(job: Job, lines: Sequence[Line], send: Send, begun: float) -> None:
    idle: asyncio.Queue[Line] = asyncio.Queue()
    for line in lines:
        idle.put_nowait(line)

    async def client(due: float) -> None:
        line = await idle.get()
        await send(line, due)
        idle.put_nowait(line)

    async with asyncio.TaskGroup() as group:
        for number in range(min(job.most, int(job.seconds * job.rate))):
            # A request is late by what it waits for a free connection too: a slow server must not slow the clock.
            due = begun + number / job.rate
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            group.create_task(client(due))


def main() -> None:
    """Read a job, do it, print what came of it."""
    print(json.dumps(asdict(asyncio.run(run(Job(**json.loads(sys.stdin.read())))))))


if __name__ == "__main__":
    main()
