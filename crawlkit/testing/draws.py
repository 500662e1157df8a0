"""Settings of simulated crawls, drawn at random."""

import random
from typing import Any

from crawlkit.config import Config
from crawlkit.testing.world import World


def depth_limits(rng: random.Random) -> list[int | None]:
    """Return the depth limits in force, one after the other."""
    first: int | None = rng.choice((None, None, 1, 2, 3, 5))
    if first is None or rng.random() < 0.4:
        return [first]
    return [first, first + rng.randint(1, 3), rng.choice((None, first + 4))]


def drawn_budget(world: World, seed: int) -> int:
    """Return a template budget: a very small one where pages have texts, which may earn more."""
    return random.Random(f"budget {seed}").choice((1, 1, 2, 3, 5)) if world.has_texts else Config().template_budget


def manners(rng: random.Random) -> dict[str, Any]:
    """Return how politely and with how many workers a run goes about it: any run may do so otherwise."""
    return {
        "workers": rng.choice((1, 2, 4, 12)),
        "host_concurrency": rng.choice((1, 1, 2, 4)),
        "delay": rng.choice((0.0, 0.0, 0.3, 1.0, 2.5)),
    }
