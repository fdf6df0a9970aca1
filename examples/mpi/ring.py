#!/usr/bin/env python3
"""Passes a token around all MPI ranks; rank 0 prints where it has been.

Runs under OpenMPI by mpi4py. Debian's mpi4py is built for OpenMPI alone, so
under MPICH's hydra (which sets PMI_RANK) it calls libmpich itself.
"""
import ctypes
import os
import socket
import sys


class OpenMPI:
    def __init__(self):
        from mpi4py import MPI
        self.comm = MPI.COMM_WORLD
        self.rank, self.size = self.comm.Get_rank(), self.comm.Get_size()

    def send(self, text, dest):
        self.comm.send(text, dest=dest)

    def recv(self, source):
        return self.comm.recv(source=source)

    def close(self):
        pass


class MPICH:
    WORLD, CHAR, LENGTH = 0x44000000, 0x4C000101, 1 << 16  # values of MPICH's ABI

    def __init__(self):
        self.lib = ctypes.CDLL("libmpich.so.12")
        self.lib.MPI_Init(None, None)
        n = ctypes.c_int()
        self.lib.MPI_Comm_rank(self.WORLD, ctypes.byref(n))
        self.rank = n.value
        self.lib.MPI_Comm_size(self.WORLD, ctypes.byref(n))
        self.size = n.value

    def send(self, text, dest):
        b = ctypes.create_string_buffer(text.encode(), self.LENGTH)
        self.lib.MPI_Send(b, self.LENGTH, self.CHAR, dest, 0, self.WORLD)

    def recv(self, source):
        b = ctypes.create_string_buffer(self.LENGTH)
        status = ctypes.create_string_buffer(64)
        self.lib.MPI_Recv(b, self.LENGTH, self.CHAR, source, 0, self.WORLD, status)
        return b.value.decode()

    def close(self):
        # Debian's MPICH 4.0.2 hangs in MPI_Finalize when its ranks talk over
        # UCX's TCP alone, with or without Berth: the rank that is first stops
        # answering the others. So say goodbye to hydra as MPI_Finalize does
        # (PMI-1), and end.
        self.lib.MPI_Barrier(self.WORLD)
        sys.stdout.flush()
        fd = int(os.environ["PMI_FD"])
        for word in (b"cmd=barrier_in\n", b"cmd=finalize\n"):
            os.write(fd, word)
            answer = b""
            while not answer.endswith(b"\n"):
                part = os.read(fd, 1)
                if not part:
                    break
                answer += part
        os._exit(0)


mpi = MPICH() if "PMI_RANK" in os.environ else OpenMPI()
mine = "rank %d of %d on %s" % (mpi.rank, mpi.size, socket.gethostname())
if mpi.rank == 0:
    token = mine
    if mpi.size > 1:
        mpi.send(token, 1)
        token = mpi.recv(mpi.size - 1)
    print(token)
    if len(token.split("\n")) != mpi.size:
        sys.exit("the token did not come through all ranks")
    print("ring of %d ok" % mpi.size, flush=True)
else:
    token = mpi.recv(mpi.rank - 1)
    mpi.send(token + "\n" + mine, (mpi.rank + 1) % mpi.size)
mpi.close()
