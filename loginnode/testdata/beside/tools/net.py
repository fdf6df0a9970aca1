# serve ADDRESS FILE [http], count ADDRESS, free: see prelude.bash.
import os, socket, sys, threading

def to(address, how):
    if "/" in address:
        s = socket.socket(socket.AF_UNIX)
        getattr(s, how)(address)
    else:
        host, port = address.rsplit(":", 1)
        s = socket.socket()
        getattr(s, how)((host, int(port)))
    return s

def answer(c, http):
    if http:
        while b"\r\n\r\n" not in (c.recv(65536, socket.MSG_PEEK) or b"\r\n\r\n"):
            pass
        c.recv(65536)
        c.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\npage\n")
    else:
        n = 0
        while d := c.recv(65536):
            n += len(d)
        c.sendall(b"got %d\n" % n)
    c.close()

if sys.argv[1] == "free":
    print(to("127.0.0.1:0", "bind").getsockname()[1])
elif sys.argv[1] == "count":
    try:
        c = to(sys.argv[2], "connect")
    except OSError as e:
        sys.exit(e.strerror)
    try:
        while d := sys.stdin.buffer.read1(65536):
            c.sendall(d)
        c.shutdown(socket.SHUT_WR)
        while d := c.recv(65536):
            sys.stdout.buffer.write(d)
    except OSError as e:
        print("the connection is over")
else:
    s = to(sys.argv[2], "bind")
    s.listen(64)
    name = s.getsockname()
    with open(sys.argv[3], "w") as f:
        f.write(str(name[1]) if isinstance(name, tuple) else "ready")
    if os.fork():
        os._exit(0)
    os.closerange(3, s.fileno())  # what the script has open is not kept open here
    os.closerange(s.fileno() + 1, 1024)
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    while True:
        c, _ = s.accept()
        threading.Thread(target=answer, args=(c, len(sys.argv) > 4), daemon=True).start()
