# rsync there, back, again, with deletion, of what is not there.
mkdir -p t/sub; for i in $(seq 50); do echo $i > t/$i; done; ln -s 1 t/link; chmod 600 t/2; head -c 2M /dev/urandom > t/sub/big
find t -exec touch -h -d "2020-02-02 UTC" {} +; rsync -a t/ h:t; echo "code $?"; rsync -ai --delete h:t/ back; echo "code $?"; diff -r --no-dereference t back
rm t/3; echo changed >> t/4; touch -d "2021-02-02 UTC" t/4 t/5 t; rsync -ai --delete t/ h:t; rsync -ani --delete t/ h:t
rsync -az --stats h:t/sub/ z | grep -E 'Number of (regular )?files'
rsync h:no-such . 2>&1 | sed 's/(code.*//; s/".*"//'; echo "code ${PIPESTATUS[0]}"
rsync f-that-is-not h:; echo "code $?"
