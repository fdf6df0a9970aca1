"""Joins the ranks of a job with torch.distributed, and prints where they are."""
import os
import socket

import torch.distributed as dist

dist.init_process_group("gloo")  # RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT say how
rank, size, host = dist.get_rank(), dist.get_world_size(), socket.gethostname()
print(f"rank {rank} of {size} on {host}, local rank {os.environ['LOCAL_RANK']}", flush=True)
hosts = [None] * size
dist.all_gather_object(hosts, host)
if rank == 0:
    print(f"{size} ranks on {len(set(hosts))} hosts", flush=True)
dist.destroy_process_group()
