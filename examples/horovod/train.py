"""Joins the ranks of a job with Horovod, and prints where they are."""
import socket

import horovod.torch as hvd

hvd.init()
host = socket.gethostname()
print(f"rank {hvd.rank()} of {hvd.size()} on {host}, local rank {hvd.local_rank()}", flush=True)
hosts = hvd.allgather_object(host)
if hvd.rank() == 0:
    print(f"{hvd.size()} ranks on {len(set(hosts))} hosts", flush=True)
