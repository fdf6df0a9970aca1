# Through one server to another, in each way.
ssh -J h h2 'echo jumped; exit 3'; echo "code $?"
ssh -o ProxyCommand='ssh -W %h:%p h' h2 'cat' < /dev/null; echo "code $?"
echo data > f; scp -q -J h f h2:g; cat "$REMOTE/g"
head -c 3M /dev/zero | ssh -J h h2 md5sum
ssh -W 127.0.0.1:1 h < /dev/null; echo "code $?"
