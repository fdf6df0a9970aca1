# Input that is large, empty, unread, ended early.
head -c 20M /dev/zero | tr '\0' x | ssh h sha256sum
head -c 5M /dev/zero | ssh h 'exit 3'; echo "code $?"
head -c 5M /dev/zero | ssh h 'head -c 10'  | wc -c
ssh h 'cat; echo end' < /dev/null
ssh -n h 'cat; echo end'
{ echo x; } | ssh h 'cat; sleep 0.3; echo later'
printf 'one\ntwo\n' | while read -r l; do ssh -n h "echo $l"; done
printf '\0\377\r\n\033' | ssh h cat | od -An -tx1
tar c -C /etc passwd group | ssh h 'tar x && sort passwd | md5sum' 
sort /etc/passwd | md5sum
echo 'exec 0<&-; sleep 0.2; echo survived' | ssh h bash
