"""The ways of messages between simulated partitions and their driver: late all of them, and some of them lossy.

What the driver tells its partitions travels on lines as between processes: in order, and lost only with who it is for. Looks
and standings may be lost or told twice even there. Parcels and receipts may be lost, doubled and overtake each other, and
outlive the run that they were sent in.
"""

import random
from collections import deque
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from crawlkit.cluster.messages import Look, Parcel, Receipt, Standing, ToDriver, ToMember

Message = TypeVar("Message")


@dataclass(frozen=True, slots=True)
class Weather:
    """How bad ways are: which share of messages they lose and repeat, and delays to draw from."""

    lost: float
    repeated: float
    delays_s: tuple[float, ...]

    @classmethod
    def drawn(cls, rng: random.Random) -> "Weather":
        """Draw the weather of one crawl."""
        return cls(
            lost=rng.choice((0.0, 0.0, 0.1, 0.4)),
            repeated=rng.choice((0.0, 0.1, 0.4)),
            delays_s=rng.choice(((0.0,), (0.0, 0.01, 0.2), (0.0, 0.5, 5.0, 40.0))),
        )

    def copies(self, rng: random.Random) -> int:
        """Draw how often a message arrives that may be lost and repeated."""
        return 0 if rng.random() < self.lost else 1 + (rng.random() < self.repeated)


@dataclass(slots=True)
class Line(Generic[Message]):
    """One way of a line: messages in order, each with when it is there. None is its end."""

    rng: random.Random
    weather: Weather
    waiting: deque[tuple[float, Message | None]] = field(default_factory=deque)

    def put(self, message: Message | None, now: float) -> None:
        """Send a message, or the end."""
        copies = self.weather.copies(self.rng) if isinstance(message, Look | Standing) else 1
        for _ in range(copies):
            before = self.waiting[-1][0] if self.waiting else now
            self.waiting.append((max(before, now + self.rng.choice(self.weather.delays_s)), message))

    @property
    def next_s(self) -> float | None:
        """When the next message is there, None if none is on its way."""
        return self.waiting[0][0] if self.waiting else None

    def take(self) -> Message | None:
        """Take the next message."""
        return self.waiting.popleft()[1]


ToPartition = Line[ToMember]
FromPartition = Line[ToDriver]


@dataclass(slots=True)
class Post:
    """Parcels and receipts on their way, whichever run of the crawl they are from."""

    rng: random.Random
    weather: Weather
    waiting: list[tuple[float, Parcel | Receipt]] = field(default_factory=list)

    def send(self, message: Parcel | Receipt, now: float) -> None:
        """Send a message; it arrives once, more often, or never."""
        for _ in range(self.weather.copies(self.rng)):
            self.waiting.append((now + self.rng.choice(self.weather.delays_s), message))

    @property
    def next_s(self) -> float | None:
        """When the next message is there, None if none is on its way."""
        return min((at for at, _ in self.waiting), default=None)

    def take(self, now: float) -> Parcel | Receipt:
        """Take one of those that are there."""
        place = self.rng.choice([place for place, (at, _) in enumerate(self.waiting) if at <= now])
        return self.waiting.pop(place)[1]
