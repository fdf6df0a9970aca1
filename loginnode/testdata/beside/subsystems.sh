# Subsystems there are and are not.
ssh -s h sftp < /dev/null; echo "code $?"
ssh -s h no-such < /dev/null; echo "code $?"
