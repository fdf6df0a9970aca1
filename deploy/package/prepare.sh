#!/bin/sh
# Lays out what packages install beside the binaries, in bin/package: links
# under Slurm's names, completion, compressed manual pages. goreleaser and
# test/deb run it; it needs nothing but the repository.
set -eu
cd "$(dirname "$0")/../.."
out=bin/package
rm -rf "$out"
share=$out/usr/share
mkdir -p "$out/usr/lib/berth/bin" "$share/berth/man/man1" "$share/man/man1" "$share/doc/berth" "$share/bash-completion/completions" \
	"$share/zsh/site-functions" "$share/zsh/vendor-completions" "$share/fish/vendor_completions.d"

cp completions/berth.bash "$share/bash-completion/completions/berth"
cp completions/_berth "$share/zsh/site-functions/_berth"
# Debian's zsh looks elsewhere.
cp completions/_berth "$share/zsh/vendor-completions/_berth"
cp completions/berth.fish "$share/fish/vendor_completions.d/berth.fish"
cp README.md CHANGELOG.md LICENSE "$share/doc/berth/"

for page in docs/man/*.1; do
	name=$(basename "$page" .1)
	case $name in
	berth*)
		gzip -9nc "$page" >"$share/man/man1/$name.1.gz"
		;;
	*)
		# One of Slurm's names: postinstall.sh puts it in place.
		gzip -9nc "$page" >"$share/berth/man/man1/$name.1.gz"
		ln -s ../../../bin/berth "$out/usr/lib/berth/bin/$name"
		ln -s berth.fish "$share/fish/vendor_completions.d/$name.fish"
		echo "$name"
		;;
	esac
done >"$share/berth/commands"
mkdir -p "$share/man/man8"
for page in docs/man/*.8; do
	gzip -9nc "$page" >"$share/man/man8/$(basename "$page").gz"
done
find "$out" -type f -exec chmod 644 {} +
find "$out" -type d -exec chmod 755 {} +
