"""Joins the processes of a step with jax.distributed, and prints where they are."""
import socket

import jax

jax.distributed.initialize()  # coordinator, number and index come from SLURM_STEP_NODELIST, SLURM_NTASKS, SLURM_PROCID
print(
    f"process {jax.process_index()} of {jax.process_count()} on {socket.gethostname()}, {len(jax.devices())} devices",
    flush=True,
)
jax.distributed.shutdown()
