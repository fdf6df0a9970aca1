# Keepalives of the client's, and a client that is killed.
ssh -o ServerAliveInterval=1 -o ServerAliveCountMax=2 h 'sleep 4; echo still'; echo "code $?"
ssh h 'echo $$ > pid; exec sleep 1000' & for i in $(seq 100); do [ -s "$REMOTE/pid" ] && break; sleep 0.1; done; kill -9 $!; wait $! 2> /dev/null
pty 'ssh h' 'see $ ' 'send echo $$ > tpid; echo re""ady\n' 'see ready' 'see $ ' 'hangup' > /dev/null
for i in $(seq 100); do kill -0 "$(cat "$REMOTE/tpid")" 2> /dev/null || { echo "the shell has ended"; break; }; sleep 0.1; done
kill -9 "$(cat "$REMOTE/pid")" 2> /dev/null; true
