# -L to a port, to a closed one, to and from Unix sockets; half-close.
serve 127.0.0.1:0 port; p=$(cat port)
l=$(free); ssh -f -N -M -S ctl -o ExitOnForwardFailure=yes -L "$l:127.0.0.1:$p" -L "$D/local.sock:127.0.0.1:$p" h; echo "code $?"
echo hello | count 127.0.0.1:$l; echo hello again | count "$D/local.sock"; head -c 3M /dev/zero | count 127.0.0.1:$l
ssh -S ctl -O exit h
serve "$REMOTE/far.sock" ready; chmod 666 "$REMOTE/far.sock"; l=$(free)
ssh -f -N -M -S ctl -L "$l:$REMOTE/far.sock" h; echo by socket | count 127.0.0.1:$l; ssh -S ctl -O exit h
mkfifo hold; l=$(free); ssh -M -S ctl -L "$l:127.0.0.1:1" h 'echo ready; read x' < hold > ready2 2> errs & exec 9> hold; wait_for ready2
echo x | count 127.0.0.1:$l; echo "code $?"; exec 9>&-; wait $!; sed 's/channel [0-9]*/channel N/' errs
