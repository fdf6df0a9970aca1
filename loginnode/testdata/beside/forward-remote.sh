# -R: a port of one's choice, any port, one that is taken, cancelled; sockets.
serve 127.0.0.1:0 port; p=$(cat port); r=$(free)
ssh -f -N -M -S ctl -o ExitOnForwardFailure=yes -R "$r:127.0.0.1:$p" h; echo "code $?"; echo there and back | count 127.0.0.1:$r
ssh -o ExitOnForwardFailure=yes -R "$r:127.0.0.1:$p" h true 2>&1 | sed "s/$r/TAKEN/"; echo "code ${PIPESTATUS[0]}"
ssh -R "$r:127.0.0.1:$p" h 'echo goes on' 2>&1 | sed "s/$r/TAKEN/"
any=$(ssh -S ctl -O forward -R "0:127.0.0.1:$p" h); echo any | count 127.0.0.1:$any
ssh -S ctl -O cancel -R "$r:127.0.0.1:$p" h; echo "code $?"; echo x | count 127.0.0.1:$r; echo "code $?"
ssh -S ctl -O forward -R "$REMOTE/r.sock:127.0.0.1:$p" h; stat -c '%a %F' "$REMOTE/r.sock"; ssh h 'test -O r.sock && echo mine'; echo sock | count "$REMOTE/r.sock"
ssh -S ctl -O exit h; sleep 0.3; echo x | count 127.0.0.1:$any; echo "code $?"
ssh -R 80:127.0.0.1:1 -o ExitOnForwardFailure=yes h true; echo "code $?"
ssh -R 0:127.0.0.1:1 h true 2>&1 | sed 's/port [0-9]*/port N/'
