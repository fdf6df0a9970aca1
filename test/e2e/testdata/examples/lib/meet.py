"""How the stand-ins for frameworks meet: processes at one address (Group), or members of a hub (serve, join)."""
import json
import os
import socket
import threading
import time

PATIENCE = 60  # seconds


def connect(address):
    """Returns a file to the server at address (host, port), which may start later."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            return socket.create_connection(address, timeout=PATIENCE).makefile("rw")
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


def endpoint(text, default=0):
    """Returns host and port of HOST:PORT."""
    host, _, port = text.rpartition(":")
    return (host, int(port)) if host else (text, default)


def put(file, value):
    print(json.dumps(value), file=file, flush=True)


class Group:
    """size processes that have met at address, where the first of them listens.

    rank None is assigned in the order of arrival; then whoever has the address listens.
    """

    def __init__(self, address, size, rank=None):
        if not rank:
            try:
                server = socket.create_server((socket.gethostbyname(address[0]), address[1]), backlog=size)
                threading.Thread(target=_coordinate, args=(server, size)).start()
            except OSError:
                if rank == 0:
                    raise
        self.size, self.file = size, connect(address)
        put(self.file, rank)
        self.rank = json.loads(self.file.readline())

    def gather(self, value):
        """Returns the values of all processes, in the order of their ranks."""
        put(self.file, value)
        return json.loads(self.file.readline())

    def close(self):
        self.file.close()


def _coordinate(server, size):
    files = {}
    for arrival in range(size):
        file = server.accept()[0].makefile("rw")
        rank = json.loads(file.readline())
        files[arrival if rank is None else rank] = file
    if sorted(files) != list(range(size)):
        raise SystemExit(f"ranks {sorted(files)} of {size}")
    for rank, file in files.items():
        put(file, rank)
    while True:
        values = [files[rank].readline() for rank in range(size)]
        if not all(values):
            return
        for file in files.values():
            put(file, [json.loads(value) for value in values])


def serve(address, members=()):
    """Starts a hub, which remembers the members that join it, each as long as it is connected."""
    server = socket.create_server((socket.gethostbyname(address[0]), address[1]))
    present = list(members)

    def handle(conn):
        file, member = conn.makefile("rw"), None
        try:
            for line in file:
                request = json.loads(line)
                if request is not None:
                    member = request
                    present.append(member)
                put(file, present)
        except OSError:
            pass
        if member is not None:
            present.remove(member)

    def accept():
        while True:
            threading.Thread(target=handle, args=(server.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()


def join(address, member=None):
    """Returns a connection to the hub, as the member, and the present members; None only looks."""
    file = connect(address)
    put(file, member)
    return file, json.loads(file.readline())


def hostname():
    """Returns the name of this node, after a check that it is Slurm's name for it."""
    name, node = socket.gethostname(), os.environ.get("SLURMD_NODENAME")
    if node and name != node:
        raise SystemExit(f"{name} is {node} for Slurm")
    return name
