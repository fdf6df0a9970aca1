# sftp: what its commands say and do.
echo text > f; mkdir d; echo in > d/in; ln -s nowhere "$REMOTE/dangling"
sftp -q -b - h <<'X'; echo "code $?"
pwd
put f
put -r d
-mkdir d
mkdir e
chmod 600 f
rename f e/g
ln -s e/g link
ln e/g hard
ls -1
ls -1 e
-ls no-such
-rm no-such
-get dangling
-cd /root
-put f /root/f
get -p e/g got
symlink x y
rm y link hard
-rmdir e
rm e/g
rmdir e
-chown 0 d
df -h nowhere
X
cat got
echo 'ls -la' | sftp -q h | grep -c authorized_keys
printf 'get no-such\nls\n' | sftp -q -b - h; echo "code $?"
head -c 300000 /dev/urandom > part; head -c 100000 part | ssh h 'cat > part'
echo 'reput part' | sftp -q -b - h; echo "code $?"; cmp part "$REMOTE/part"
head -c 100000 part > part2; cp part "$REMOTE/part2"; echo 'reget part2' | sftp -q -b - h; echo "code $?"; cmp part part2
sftp -q h:part fetched; cmp part fetched
