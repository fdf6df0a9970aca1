"""A worker of MultiWorkerMirroredStrategy, whose TF_CONFIG comes from Slurm's variables."""
import json
import os
import socket
import subprocess

nodes = subprocess.run(
    ["scontrol", "show", "hostnames", os.environ["SLURM_JOB_NODELIST"]], check=True, capture_output=True, text=True
).stdout.split()
per_node = int(os.environ["SLURM_NTASKS_PER_NODE"])
base = 20000 + int(os.environ["SLURM_JOB_ID"]) % 5000 * 2
index = int(os.environ["SLURM_PROCID"])
os.environ["TF_CONFIG"] = json.dumps({
    "cluster": {"worker": [f"{node}:{base + i}" for node in nodes for i in range(per_node)]},
    "task": {"type": "worker", "index": index},
})

import tensorflow as tf  # noqa: E402 (reads TF_CONFIG)

strategy = tf.distribute.MultiWorkerMirroredStrategy()
print(f"worker {index} of {strategy.num_replicas_in_sync} on {socket.gethostname()}", flush=True)
