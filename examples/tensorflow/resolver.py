"""A worker of MultiWorkerMirroredStrategy, whose cluster TensorFlow itself reads from Slurm's variables."""
import os
import socket

import tensorflow as tf

resolver = tf.distribute.cluster_resolver.SlurmClusterResolver(
    port_base=20000 + int(os.environ["SLURM_JOB_ID"]) % 5000 * 2, gpus_per_node=0, gpus_per_task=0
)
strategy = tf.distribute.MultiWorkerMirroredStrategy(cluster_resolver=resolver)
print(f"worker {resolver.task_id} of {strategy.num_replicas_in_sync} on {socket.gethostname()}", flush=True)
