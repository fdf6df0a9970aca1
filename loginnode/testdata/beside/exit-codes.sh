# Exit codes, and both outputs apart.
ssh h 'echo out; echo err >&2; exit 7'; echo "code $?"
ssh h true; echo "code $?"
ssh h 'exit 255'; echo "code $?"
ssh h no-such-command; echo "code $?"
ssh h 'kill -TERM $$'; echo "code $?"
ssh h 'kill -SEGV $$'; echo "code $?"
ssh h '/etc/passwd'; echo "code $?"
