# What every script here begins with. The runner sets CONFIG (of OpenSSH's
# client, with the hosts h and h2), PORT, WHO, KEY, HOSTKEY (public), REMOTE (the
# user's home), TOOLS and D, a fresh directory which is where it runs.
for p in scp sftp; do eval "$p() { command $p -F \"\$CONFIG\" \"\$@\"; }"; done
mkdir bin
printf '#!/bin/sh\nexec /usr/bin/ssh -F "%s" "$@"\n' "$CONFIG" > bin/ssh # for what starts it: rsync, git, ProxyCommand, pty
chmod +x bin/ssh
export PATH="$D/bin:$PATH" GIT_SSH="$D/bin/ssh" LC_ALL=C TZ=UTC TERM=xterm

PYTHON=/usr/bin/python3 # not one that a tool has put before it, which takes its time
[ -x "$PYTHON" ] || PYTHON=python3

serve() { "$PYTHON" "$TOOLS/net.py" serve "$@"; }  # serve ADDRESS FILE [http]: in the background; its port is in FILE
count() { "$PYTHON" "$TOOLS/net.py" count "$@"; }  # count ADDRESS: sends its input, ends it, prints what comes back
free() { "$PYTHON" "$TOOLS/net.py" free; }         # a free port
pty() { "$PYTHON" "$TOOLS/terminal.py" "$@"; }          # pty COMMAND STEP...: types into a terminal
wait_for() { for _ in $(seq 600); do [ -s "$1" ] && return; sleep 0.1; done; echo "$1 is not there"; exit 1; }
