# Shells without a terminal.
printf 'echo $0\nfalse\n' | ssh -T h; echo "code $?"
printf 'exit 4\n' | ssh -T h; echo "code $?"
printf 'kill -9 $$\n' | ssh -T h; echo "code $?"
printf 'cd /tmp\npwd\n' | ssh -T h 'bash -s'
ssh -o RemoteCommand='echo by configuration' h
ssh h sh -c 'echo x' y | od -c
