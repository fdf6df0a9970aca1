"""Stands in for TensorFlow's MultiWorkerMirroredStrategy and SlurmClusterResolver."""
import json
import os
import re
import socket
import subprocess

import meet


class _Cluster:
    """The workers of TF_CONFIG."""

    def __init__(self):
        config = json.loads(os.environ["TF_CONFIG"])
        self.workers, self.task_id = config["cluster"]["worker"], config["task"]["index"]


class SlurmClusterResolver:
    """The workers of a step, of which node I has as many as SLURM_STEP_TASKS_PER_NODE says."""

    def __init__(self, port_base, gpus_per_node, gpus_per_task):
        env = os.environ
        nodes = subprocess.run(
            ["scontrol", "show", "hostnames", env["SLURM_STEP_NODELIST"]], check=True, capture_output=True, text=True
        ).stdout.split()
        counts = []
        for part in env["SLURM_STEP_TASKS_PER_NODE"].split(","):
            count, times = re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", part).groups()
            counts += [int(count)] * int(times or 1)
        self.workers = [f"{n}:{port_base + i}" for n, count in zip(nodes, counts, strict=True) for i in range(count)]
        self.task_id = int(env["SLURM_PROCID"])
        if len(self.workers) != int(env["SLURM_STEP_NUM_TASKS"]):
            raise SystemExit(f"workers {self.workers}")


class MultiWorkerMirroredStrategy:
    """Each worker listens at its address, and has met the others at the first one's."""

    def __init__(self, cluster_resolver=None):
        cluster = cluster_resolver or _Cluster()
        host, port = meet.endpoint(cluster.workers[cluster.task_id])
        if host != meet.hostname():
            raise SystemExit(f"worker {cluster.task_id} is on {meet.hostname()}, not {host}")
        if cluster.task_id:
            self.server = socket.create_server((socket.gethostbyname(host), port))
        group = meet.Group(meet.endpoint(cluster.workers[0]), len(cluster.workers), cluster.task_id)
        for address in group.gather(cluster.workers[cluster.task_id])[1:]:
            meet.connect(meet.endpoint(address)).close()
        self.num_replicas_in_sync = len(set(group.gather(cluster.task_id)))
        group.close()


class distribute:
    MultiWorkerMirroredStrategy = MultiWorkerMirroredStrategy

    class cluster_resolver:
        SlurmClusterResolver = SlurmClusterResolver
