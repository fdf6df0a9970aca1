# The rpm and the apk, for run.sh: what is in them, and what they do when they are installed. Each gets a
# root of its own with little more than a shell in it: the commands are static.

commands="sbatch squeue srun scancel salloc sinfo sacct scontrol"

# look_into KIND COMMAND...: the list of files that the command prints is what a package has.
look_into() {
	local kind=$1 path
	shift
	"$@" >"$work/contents" 2>"$work/log" || { cat "$work/log"; fail "$kind: $*"; }
	for path in usr/bin/berth usr/lib/berth/bin/squeue usr/share/berth/man/man1/squeue.1.gz usr/share/bash-completion/completions/berth \
		usr/share/fish/vendor_completions.d/squeue.fish usr/share/zsh/vendor-completions/_berth usr/share/zsh/site-functions/_berth \
		usr/share/man/man1/berth.1.gz usr/share/man/man8/berth-scheduler.8.gz; do
		grep -qE "(^|[ /])$path( |\$)" "$work/contents" || fail "the $kind has no $path"
	done
	! grep -qE '(^|[ /])usr/bin/squeue( |$)' "$work/contents" || fail "the $kind has files that are Slurm's"
	echo "ok: the $kind, $(wc -l <"$work/contents") entries, $(stat -c %s "$work/berth.$kind") bytes"
}

# small_root NAME PROGRAM...: makes a root with busybox and those programs of this machine, and puts its
# path into $root.
small_root() {
	root=$work/$1
	shift
	mkdir -p "$root"/{bin,usr/bin,dev,proc,etc,tmp,root,var/lib,usr/share/man/man1,usr/share/bash-completion/completions}
	mknod -m 666 "$root/dev/null" c 1 3
	ln -s /proc/self/fd "$root/dev/fd"
	mount -t proc proc "$root/proc"
	cp /bin/busybox "$root/bin/"
	local p f
	for p in sh cat cut rm ln ls mkdir readlink find test; do ln -s busybox "$root/bin/$p"; done
	for p in "$@"; do
		for f in "$(command -v "$p")" $(ldd "$(command -v "$p")" | grep -oE '/\S+'); do
			mkdir -p "$root$(dirname "$f")"
			cp -L "$f" "$root$f"
		done
	done
}

# works: every command is in its place, says its version, and completes in bash.
works() {
	local name
	for name in $commands; do
		has "slurm 22.05.8" "$name" --version
		[ -e "$root/usr/share/man/man1/$name.1.gz" ] || [ -L "$root/usr/share/man/man1/$name.1.gz" ] || fail "$name has no manual page"
	done
	has "--states=" bash -c '. /usr/share/bash-completion/completions/squeue
		COMP_LINE="squeue --stat" COMP_POINT=13 COMP_TYPE=9; _berth_complete squeue --stat squeue; printf "%s\n" "${COMPREPLY[@]}"'
}

# nothing_left: no link to Berth's files, under any name.
nothing_left() {
	local left
	left=$(find "$root" -xdev -lname '*berth*' -o -path "$root/usr/*berth*" -o -path "$root/etc/alternatives/*") || true
	[ -z "$left" ] || fail "left behind: $left"
}

# try_apk does what apk does: there is no such program in Debian. The machine has no alternatives.
try_apk() {
	step "the apk, where there are no alternatives"
	small_root apk bash
	printf '#!/bin/sh\necho real\n' >"$root/usr/bin/sinfo" # of a Slurm client, say
	chmod 755 "$root/usr/bin/sinfo"
	tar -xzf "$work/berth.apk" -C "$root" 2>/dev/null
	for script in .post-install .post-upgrade; do # the second time as for a later version
		has "Berth's are in /usr/lib/berth/bin" sh "/$script" 0.0.1
	done
	has real sinfo
	rm "$root/usr/bin/sinfo"
	in_root sh /.post-upgrade 0.0.2
	works
	in_root sh /.pre-deinstall 0.0.2
	tar -tzf "$work/berth.apk" 2>/dev/null | grep -v '/$' | (cd "$root" && xargs rm -f)
	find "$root/usr" -depth -type d -empty -path '*berth*' -delete
	nothing_left
}

# try_rpm installs with Debian's rpm into a root that has Debian's alternatives.
try_rpm() {
	step "the rpm, by alternatives"
	small_root rpm bash update-alternatives
	mkdir -p "$root/etc/alternatives" "$root/var/lib/dpkg/alternatives" "$root/var/log"
	local flags=(--root "$root" --nodeps --force-debian)
	rpm "${flags[@]}" -i "$work/berth.rpm" >"$work/log" 2>&1 || { cat "$work/log"; fail "rpm -i"; }
	has /usr/lib/berth/bin/squeue readlink /etc/alternatives/squeue
	works
	rpm --root "$root" --verify --nodeps berth || fail "rpm --verify"
	# A later version keeps the commands.
	sed 's/^version: .*/version: 0.0.2/' "$work/nfpm.yaml" >"$work/later.yaml"
	"$work/nfpm" package -p rpm -f "$work/later.yaml" -t "$work/later.rpm" >/dev/null
	rpm "${flags[@]}" -U "$work/later.rpm" >"$work/log" 2>&1 || { cat "$work/log"; fail "rpm -U"; }
	works
	rpm --root "$root" --nodeps -e berth >"$work/log" 2>&1 || { cat "$work/log"; fail "rpm -e"; }
	nothing_left
}
