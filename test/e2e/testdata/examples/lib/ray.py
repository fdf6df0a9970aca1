"""Stands in for a program's side of Ray."""
import os

import meet


def init():
    nodes()


def nodes():
    file, members = meet.join(meet.endpoint(os.environ["RAY_ADDRESS"]))
    file.close()
    return [{"NodeManagerHostname": host, "CPU": cpus, "Alive": True} for host, cpus in members]


def cluster_resources():
    return {"CPU": float(sum(n["CPU"] for n in nodes()))}


def shutdown():
    pass
