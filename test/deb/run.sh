#!/bin/bash
# Makes the packages of the commands in bin (make build-light): looks into them, installs the rpm and the
# apk into small roots (other.sh), and the deb into a clean Debian, alone and beside Slurm's own client.
# Needs root, debootstrap and Debian's archive.
set -euo pipefail
cd "$(dirname "$0")/../.."
# SHORT=1 leaves out the clean Debian, and works without root.
if [ -z "${SHORT:-}" ]; then
	[ "$(id -u)" = 0 ] || { echo "test/deb/run.sh: needs root" >&2; exit 1; }
	command -v debootstrap >/dev/null || { echo "test/deb/run.sh: needs debootstrap" >&2; exit 1; }
fi
# The release of nfpm that this goreleaser has inside.
nfpm=github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.0
suite=${SUITE:-bookworm}

# Only the roots of this script and what it mounts there go at the end.
work=$(mktemp -d /tmp/berth-deb-XXXXXX)
cleanup() {
	for r in "$work"/*/; do umount "$r/proc" 2>/dev/null || true; done
	rm -rf --one-file-system "$work"
}
trap cleanup EXIT

step() { printf '\n--- %s\n' "$*"; }
fail() { printf 'FAIL: %s\n' "$*" >&2; exit 1; }
in_root() { env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive chroot "$root" "$@"; }
# has WANT COMMAND...: the command succeeds and prints WANT.
has() {
	local want=$1 got
	shift
	got=$(in_root "$@" 2>&1) || fail "$*: $got"
	case $got in *"$want"*) ;; *) fail "$*: '$got', want '$want'" ;; esac
	printf 'ok: %s: %s\n' "$*" "$want"
}

step "the packages"
deploy/package/prepare.sh
arch=$(dpkg --print-architecture)
go -C test/release run . package ../../goreleaser.yaml berth "${BIN:-bin}" 0.0.1~test "$arch" >"$work/nfpm.yaml"
GOBIN=$work go install $nfpm
for kind in deb rpm apk; do
	"$work/nfpm" package -p $kind -f "$work/nfpm.yaml" -t "$work/berth.$kind" >/dev/null
done
dpkg-deb --info "$work/berth.deb" >"$work/info"
grep -E '^ (Package|Version|Architecture|Installed-Size):' "$work/info"

. test/deb/other.sh
look_into deb dpkg-deb --contents "$work/berth.deb"
look_into apk tar -tzf "$work/berth.apk"
if command -v rpm >/dev/null; then
	look_into rpm rpm -qlp "$work/berth.rpm"
else
	echo "no rpm here: the rpm is not looked into"
fi
if [ "$(id -u)" = 0 ] && [ -x /bin/busybox ]; then
	try_apk
	command -v rpm >/dev/null && try_rpm
else
	echo "without root and busybox (busybox-static): rpm and apk are not installed"
fi
[ -z "${SHORT:-}" ] || exit 0

step "a clean $suite"
root=$work/root
if [ -n "${BASE:-}" ]; then # a tree that debootstrap has made before
	cp -a "$BASE" "$root"
else
	debootstrap --variant=minbase --include=man-db,bash-completion,zsh,fish "$suite" "$root" >"$work/log" 2>&1 || { tail -20 "$work/log"; exit 1; }
fi
mount -t proc proc "$root/proc"
cp /etc/resolv.conf "$root/etc/resolv.conf"
cp "$work/berth.deb" "$root/root/"

step "alone"
in_root dpkg -i /root/berth.deb >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
has "slurm 22.05.8" sbatch --version
has "Usage: squeue" squeue --help
has "slurm 22.05.8" berth squeue --version
has /usr/lib/berth/bin/squeue readlink /etc/alternatives/squeue
while read -r name; do
	in_root test -x "/usr/bin/$name" || fail "/usr/bin/$name is missing"
done <"$root/usr/share/berth/commands"
has "list the jobs in the queue" man -P cat squeue
has "--states=" bash -c '. /usr/share/bash-completion/bash_completion; _completion_loader squeue; complete -p squeue >&2
	COMP_LINE="squeue --stat" COMP_POINT=13 COMP_TYPE=9; _berth_complete squeue --stat squeue; printf "%s\n" "${COMPREPLY[@]}"'
has "--partition=" fish -c 'complete -C "squeue --part"'
has _berth zsh -c 'autoload -Uz compinit; compinit -D; print -r -- $_comps[squeue]'

step "beside Slurm's client"
in_root sh -c 'apt-get update -qq && apt-get install -y -qq --no-install-recommends slurm-client' >"$work/log" 2>&1 || { tail -20 "$work/log"; exit 1; }
in_root test ! -L /usr/bin/squeue || fail "slurm-client's squeue is not in its place"
has "slurm 22.05.8" /usr/lib/berth/bin/sbatch --version
has "Usage: squeue [OPTIONS]" berth squeue --help
in_root dpkg --verify slurm-client || fail "files of slurm-client were changed"
has "Berth's are in /usr/lib/berth/bin" dpkg -i /root/berth.deb
in_root dpkg --verify slurm-client || fail "files of slurm-client were changed by a second install"
in_root apt-get remove -y -qq slurm-client >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
has "" dpkg-reconfigure berth
has "Usage: squeue [OPTIONS]" squeue --help

step "gone"
in_root dpkg --purge berth >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
left=$(in_root sh -c 'find / -xdev \( -lname "*berth*" -o -path "/usr/*berth*" -o -path "/var/lib/dpkg/alternatives/s*queue" \) | grep -v /proc') || true
[ -z "$left" ] || fail "left behind: $left"
in_root test ! -e /usr/bin/squeue || fail "/usr/bin/squeue is still there"

printf '\nthe package installs, stays beside Slurm, and goes without a trace\n'
