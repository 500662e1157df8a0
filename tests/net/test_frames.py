"""Messages over a pair of sockets: whole, in order, and an end that is told as one."""

import asyncio

import pytest

from crawlkit.engine.runner import run_async
from crawlkit.net.frames import Frames, pair


async def both() -> tuple[Frames, Frames]:
    ours, theirs = pair()
    return await Frames.over(ours), await Frames.over(theirs)


def test_messages_arrive_whole_and_in_order() -> None:
    async def talk() -> list[bytes | None]:
        ours, theirs = await both()
        sent = [b"", b"a", b"x" * 3_000_000, b"end"]
        sending = asyncio.create_task(send_all(ours, sent))
        received = [await theirs.receive() for _ in sent]
        await sending
        ours.close()
        received.append(await theirs.receive())
        theirs.close()
        return received

    assert run_async(talk()) == [b"", b"a", b"x" * 3_000_000, b"end", None]


async def send_all(frames: Frames, messages: list[bytes]) -> None:
    for message in messages:
        await frames.send(message)


def test_a_message_to_nobody_is_a_connection_error() -> None:
    async def talk() -> None:
        ours, theirs = await both()
        theirs.close()
        assert await ours.receive() is None
        ours.close()
        with pytest.raises(ConnectionError):
            ours.post(b"x")

    run_async(talk())


def test_posting_does_not_wait_for_a_reader() -> None:
    async def talk() -> int:
        ours, theirs = await both()
        for _ in range(50):
            ours.post(b"x" * 100_000)
        received = [await theirs.receive() for _ in range(50)]
        ours.close()
        theirs.close()
        return sum(len(message or b"") for message in received)

    assert run_async(talk()) == 5_000_000
