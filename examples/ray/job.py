"""Waits for the nodes of a Ray cluster in a Slurm job, and prints them."""
import os
import time

import ray

ray.init()  # the cluster of RAY_ADDRESS


def hosts():
    return {n["NodeManagerHostname"] for n in ray.nodes() if n["Alive"]}


while len(hosts()) < int(os.environ["SLURM_JOB_NUM_NODES"]):
    time.sleep(0.5)
print(f"Ray has {len(hosts())} nodes: {' '.join(sorted(hosts()))}")
print(f"Ray has {ray.cluster_resources()['CPU']:.0f} CPUs")
ray.shutdown()
