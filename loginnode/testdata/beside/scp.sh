# scp in both protocols: files, directories, modes, times, what is not there.
for o in -s -O; do
  echo "== $o"; mkdir -p t/sub; head -c 3M /dev/urandom > t/big; echo x > 't/sub/a b'; chmod 640 t/big; touch -d '2020-02-02 02:02:02 UTC' t/sub/'a b'
  scp -q $o t/big h:copy; echo "code $?"; cmp t/big "$REMOTE/copy"; stat -c '%a %U' "$REMOTE/copy"
  scp -q $o -rp t h:tree; echo "code $?"; diff -r t "$REMOTE/tree"; stat -c '%a %Y' "$REMOTE/tree/big" "$REMOTE/tree/sub/a b" | sed '1s/ .*//'
  scp -q $o -r h:tree back; echo "code $?"; diff -r t back
  scp -q $o h:no-such-file x; echo "code $?"
  scp -q $o h:tree x; echo "code $?"
  scp -q $o t/big h:no/such/dir/; echo "code $?"
  scp -q $o t/big h:/root/x; echo "code $?"
  scp -q $o 'h:tree/sub/*' .; echo "code $?"; ls 'a b'
  scp -q -3 $o h:copy h:copy3; echo "code $?"; cmp t/big "$REMOTE/copy3"
  rm -rf t back x 'a b' "$REMOTE/tree" "$REMOTE"/copy*
done
