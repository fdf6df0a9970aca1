# VS Code's way: a shell fed by a pipe, a server left running, a port to it.
s=$(free); mkfifo in; ssh -T -D "$s" h bash < in > out 2> errs & ssh=$!; exec 9> in
echo 'uname -s; mkdir -p .v; cd .v; (nohup sleep 1000 > log 2>&1 < /dev/null & echo $! > pid); echo "listeningOn==ok=="' >&9
wait_for out; for i in $(seq 100); do grep -q listeningOn out && break; sleep 0.1; done; cat out
serve 127.0.0.1:0 port http; curl -sS --max-time 20 --socks5-hostname 127.0.0.1:$s http://127.0.0.1:$(cat port)/
exec 9>&-; wait $ssh; echo "code $?"; cat errs; kill -0 "$(cat "$REMOTE/.v/pid")" && echo "it lives on"; kill "$(cat "$REMOTE/.v/pid")"
