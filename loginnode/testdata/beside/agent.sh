# An agent taken along: listed, used to go on, gone with the session.
eval "$(ssh-agent)" > /dev/null; ssh-add -q "$KEY"; ssh-keygen -q -t ed25519 -N '' -C second -f second; ssh-add -q second
ssh -A h 'ssh-add -l | wc -l; stat -c "%F %U" $SSH_AUTH_SOCK; stat -c "%a %F %U" $(dirname $SSH_AUTH_SOCK); echo $SSH_AUTH_SOCK > sock'
sleep 0.3; test -e "$(cat "$REMOTE/sock")" || echo "the socket is gone"
ssh -A h "ssh -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR -p $PORT 127.0.0.1 'echo one further; ssh-add -l | wc -l'"
ssh -A h 'ssh-add -D 2>&1; ssh-add -l'; echo "code $?"
ssh -a h 'echo "without: $SSH_AUTH_SOCK"'
kill "$SSH_AGENT_PID"
