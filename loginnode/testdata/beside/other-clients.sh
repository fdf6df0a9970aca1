# dropbear's client and PuTTY's.
if command -v dbclient > /dev/null; then
  dropbearconvert openssh dropbear "$KEY" db > /dev/null 2>&1; export HOME=$D
  dbclient -y -y -i db -p "$PORT" "$WHO@127.0.0.1" 'echo $USER > u; echo o; echo e >&2; exit 3' 2> errs; echo "code $?"; grep -x e errs
  head -c 3M /dev/zero | dbclient -y -y -i db -p "$PORT" "$WHO@127.0.0.1" md5sum 2> /dev/null
  dbclient -y -y -i db -p "$PORT" "$WHO@127.0.0.1" 'kill -9 $$' 2> /dev/null; echo "code $?"
fi
if command -v plink > /dev/null; then
  puttygen "$KEY" -o k.ppk; host=$(ssh-keygen -lf "$HOSTKEY" | cut -d' ' -f2); o="-batch -P $PORT -i k.ppk -hostkey $host"
  plink $o "$WHO@127.0.0.1" 'echo o; echo e >&2; exit 4'; echo "code $?"
  head -c 3M /dev/zero | plink $o "$WHO@127.0.0.1" md5sum
  plink $o -t "$WHO@127.0.0.1" 'test -t 0 && echo terminal' < /dev/null
  pscp -q $o /etc/passwd "$WHO@127.0.0.1:pp"; cmp /etc/passwd "$REMOTE/pp"; pscp -q -scp $o "$WHO@127.0.0.1:pp" back; cmp /etc/passwd back
  echo 'ls nothing' | psftp $o -b /dev/stdin "$WHO@127.0.0.1" 2>&1 | tail -1
fi
