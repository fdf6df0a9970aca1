# git by ssh.
export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
ssh h 'git init -q --bare -b main r.git'; git init -q -b main w; cd w; head -c 1M /dev/urandom > f; git add f; git commit -qm one
git push -q h:r.git main; echo "code $?"; git clone -q h:r.git ../c; cmp f ../c/f; git ls-remote h:r.git | wc -l
git clone -q h:no-such.git ../n > said 2>&1; echo "code $?"; head -1 said | sed "s/'.*'//"
