# One connection for many sessions.
ssh -f -N -M -S ctl h; ssh -S ctl -O check h 2>&1 | sed 's/pid=[0-9]*/pid=N/'
for i in $(seq 9); do ssh -S ctl h "echo $i; exit $i" > out.$i & done; wait; cat out.*
ssh -S ctl h 'exit 11'; echo "code $?"; head -c 3M /dev/zero | ssh -S ctl h md5sum
ssh -S ctl -tt h 'test -t 0 && echo terminal' < /dev/null
sftp -q -o ControlPath=ctl -b - h <<< 'pwd'; scp -q -o ControlPath=ctl /etc/passwd h:p; cmp /etc/passwd "$REMOTE/p"
ssh -S ctl h 'echo $$ > pid; exec sleep 1000' & wait_for "$REMOTE/pid"; ssh -S ctl -O stop h 2>&1; ssh -S ctl -O check h 2>&1 | sed 's/: .*//'; kill $!; wait $! 2> /dev/null; kill "$(cat "$REMOTE/pid")" 2> /dev/null
ssh -f -N -M -S ctl2 h; ssh -S ctl2 -O exit h; ssh -S ctl2 -O check h 2>&1 | sed 's/: .*//'
