# Terminals that are asked for without having one.
ssh -tt h 'tty | sed "s,[0-9]*$,N,"; test -t 0 && test -t 1 && test -t 2 && echo terminal; exit 5' < /dev/null; echo "code $?"
TERM=vt100 ssh -tt h 'echo $TERM; stty size; stty -a | tr ";" "\n" | grep -E "erase|intr" ' < /dev/null
ssh -tt h 'stat -c "%U %a" $(tty); printf "a\nb"; echo $SSH_TTY | sed "s,[0-9]*$,N,"' < /dev/null
ssh h 'tty; echo "tty: $SSH_TTY"'; echo "code $?"
ssh -tt h 'stty -opost; seq 20000' < /dev/null | sha256sum
ssh -tt h 'kill -TERM $$' < /dev/null; echo "code $?"
ssh -t h tty < /dev/null; echo "code $?"
