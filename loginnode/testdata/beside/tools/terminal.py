# terminal.py COMMAND STEP...: runs a command in a terminal of 24 by 80. Steps:
#   see TEXT      waits for it
#   send TEXT     types it (\n, \x03, ...)
#   size ROWS COLUMNS
#   pause         lets what was typed take effect: the far program is now in read(2)
#   hangup        closes the terminal
#   end           waits for the end, prints what came since what was seen last, and the exit code
import fcntl, os, pty, select, signal, struct, sys, termios, time

pid, fd = pty.fork()
if pid == 0:
    os.execvp("bash", ["bash", "-c", "exec " + sys.argv[1] if sys.argv[1].startswith("ssh") else sys.argv[1]])

def size(rows, columns):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

def read(left):
    if not select.select([fd], [], [], left)[0]:
        return None
    try:
        return os.read(fd, 65536)
    except OSError:
        return b""

size(24, 80)
seen = b""
for step in sys.argv[2:]:
    verb, _, text = step.partition(" ")
    text = text.encode().decode("unicode_escape").encode("latin-1")
    if verb == "see":
        until = time.time() + 60
        while text not in seen:
            d = read(max(0, until - time.time()))
            if not d:
                sys.exit("never saw %r, but %r" % (text, seen))
            seen += d
        sys.stdout.write(text.decode() + "\n")
        seen = seen[seen.index(text) + len(text):]
    elif verb == "send":
        while text:
            text = text[os.write(fd, text):]
    elif verb == "size":
        size(*map(int, text.split()))
    elif verb == "pause":
        time.sleep(0.5)
    elif verb == "hangup":
        os.close(fd)
        os.waitpid(pid, 0)
        break
    elif verb == "end":
        while d := read(60):
            seen += d
        if d is None:
            os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        sys.stdout.write("%r, exit code %d\n" % (seen.decode("utf-8", "replace"), os.waitstatus_to_exitcode(status)))
