"""`crawlkit gather`: bring the partitions of a crawl that ran on a Ray cluster to this machine."""

from pathlib import Path

import click

from crawlkit.engine.runner import run_async
from crawlkit.state.partitions import read_table
from crawlkit.surfaces.partition_options import RAY
from crawlkit.surfaces.speech import say


@click.command("gather")
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--ray-address", metavar="A", default="auto", show_default=True, help="The Ray cluster that it ran on.")
def gather_command(directory: Path, ray_address: str) -> None:
    """Bring the partitions of the crawl in DIR that lie on other machines of a Ray cluster to this one.

    They are removed where they were. Reports, exports and checks need all partitions here; so does a resume without Ray.
    """
    from crawlkit.surfaces.partitioned import check_engine  # noqa: PLC0415  (completion of its options needs none of it)

    read_table(directory)
    check_engine({"engine": RAY, "ray_address": ray_address})
    run_async(_gather(directory, ray_address))


async def _gather(directory: Path, ray_address: str) -> None:
    from crawlkit.cluster.on_ray.connecting import connected  # noqa: PLC0415
    from crawlkit.cluster.on_ray.engine import RayEngine  # noqa: PLC0415
    from crawlkit.cluster.on_ray.gathering import gather  # noqa: PLC0415
    from crawlkit.surfaces.partition import hooks_of  # noqa: PLC0415

    async with connected(ray_address) as ray:
        await gather(directory, RayEngine(ray, hooks_of, {}, say), lambda text: say(f"crawlkit: {text}"))
