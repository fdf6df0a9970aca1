# Much output on both, output that nobody reads, output of what stays behind.
ssh h 'head -c 20M /dev/zero | tr "\0" y' | sha256sum
ssh h 'head -c 5M /dev/zero | tr "\0" z >&2' 2>&1 >/dev/null | sha256sum
mkfifo open; exec 8<> open; ssh h 'yes; exit 9' <&8 | head -1; echo "codes ${PIPESTATUS[0]}"; exec 8>&-
ssh h 'yes' | head -1; echo "codes ${PIPESTATUS[0]}"
ssh h 'trap "" PIPE; yes 2>/dev/null; echo $? > pipe' | head -1
for i in $(seq 100); do [ -s "$REMOTE/pipe" ] && break; sleep 0.1; done; cat "$REMOTE/pipe"
ssh h '(sleep 0.5; echo late) & echo early'
ssh h 'sleep 1000 > /dev/null 2>&1 < /dev/null & echo $! > pid; echo back'
kill -0 "$(cat "$REMOTE/pid")" && echo "it lives on"; kill "$(cat "$REMOTE/pid")"
ssh h 'exec 1>&-; echo only >&2; sleep 0.2'; echo "code $?"
ssh h 'exec >/dev/null 2>&1; sleep 0.3; exit 9'; echo "code $?"
