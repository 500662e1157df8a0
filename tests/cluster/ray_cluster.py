"""A Ray cluster of two nodes on this machine: `python -m tests.cluster.ray_cluster [OWN]`, until standard input ends.

The nodes go by the names `first` and `second`. With OWN, a directory, the second one has a disk of its own there, which nobody
else sees, as on another machine. Prints the address of the head, once both are there.
"""

import os
import subprocess
import sys
from collections.abc import Sequence

from crawlkit.cluster.on_ray.connecting import WITHOUT_SPARE
from tests.processes import wait_until

NODE = {"num_cpus": 1, "object_store_memory": 80 * 1024 * 1024, "include_dashboard": False}
HEAD = {"node_name": "first", "no_monitor": True, "include_log_monitor": False}
OWN_DISK = ["unshare", "--mount", "--propagation", "private", "sh", "-c", 'mount -t tmpfs own "$0" && exec "$@"']
START = ["--node-name", "second", "--num-cpus", "1", "--object-store-memory", str(NODE["object_store_memory"]), "--block"]
BOTH_WITHIN_S = 60.0


def main(own: Sequence[str]) -> None:
    import ray  # noqa: PLC0415  (tests that skip without it import this module)
    from ray.cluster_utils import Cluster  # noqa: PLC0415

    cluster = Cluster(initialize_head=True, head_node_args={**NODE, **HEAD})
    start = [sys.executable, "-m", "ray.scripts.scripts", "start", "--address", cluster.address, *START]
    second = subprocess.Popen([*OWN_DISK, *own, *start] if own else start, stdout=sys.stderr, start_new_session=True)
    try:
        ray.init(address=cluster.address, log_to_driver=False)
        wait_until(lambda: sum(node["Alive"] for node in ray.nodes()) == 2, BOTH_WITHIN_S)
        ray.shutdown()
        sys.stdout.write(f"{cluster.address}\n")
        sys.stdout.flush()
        sys.stdin.read()
    finally:
        second.terminate()
        second.wait()
        cluster.shutdown()


if __name__ == "__main__":
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", **WITHOUT_SPARE}
    main(sys.argv[1:])
