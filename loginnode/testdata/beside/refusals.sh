# Who is not let in, and what that says.
ssh-keygen -q -t ed25519 -N '' -f stranger
ssh -o IdentityFile=none -i stranger h true; echo "code $?"
ssh -o PubkeyAuthentication=no h true; echo "code $?"
ssh -o User=nobody-knows h true; echo "code $?"
ssh -o PreferredAuthentications=none,password,keyboard-interactive h true; echo "code $?"
ssh -o HostKeyAlgorithms=ssh-dss h true 2>&1 | sed 's/Bad.*/Bad/'; echo "code ${PIPESTATUS[0]}"
ssh -o Ciphers=3des-cbc h true 2>&1 | sed 's/Their offer.*//'; echo "code ${PIPESTATUS[0]}"
