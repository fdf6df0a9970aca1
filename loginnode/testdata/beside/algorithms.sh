# Every cipher that the server has carries bytes; compression may be wished for.
for c in chacha20-poly1305@openssh.com aes128-gcm@openssh.com aes256-gcm@openssh.com aes128-ctr aes192-ctr aes256-ctr; do head -c 3M /dev/zero | ssh -c $c h md5sum; done
for m in hmac-sha2-256-etm@openssh.com hmac-sha2-512-etm@openssh.com; do head -c 1M /dev/zero | ssh -c aes128-ctr -m $m h md5sum; done
head -c 3M /dev/zero | ssh -C h md5sum
head -c 3M /dev/zero | ssh -o RekeyLimit=200K h cat | md5sum
