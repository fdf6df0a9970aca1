"""Joins the ranks of a job with DeepSpeed, and prints where they are."""
import argparse
import socket

import deepspeed
import torch.distributed as dist

parser = argparse.ArgumentParser()
parser.add_argument("--local_rank", type=int, default=0)  # the launcher's
args = parser.parse_args()

deepspeed.init_distributed("gloo")
rank, size, host = dist.get_rank(), dist.get_world_size(), socket.gethostname()
print(f"rank {rank} of {size} on {host}, local rank {args.local_rank}", flush=True)
hosts = [None] * size
dist.all_gather_object(hosts, host)
if rank == 0:
    print(f"{size} ranks on {len(set(hosts))} hosts", flush=True)
dist.destroy_process_group()
