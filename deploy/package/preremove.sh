#!/bin/sh
# Takes the commands under Slurm's names away, unless the package is about to
# be replaced by another version of itself (deb: upgrade; rpm: 1).
set -e
case "${1:-}" in upgrade | failed-upgrade | 1) exit 0 ;; esac
share=/usr/share
while read -r name; do
	target=/usr/lib/berth/bin/$name
	if command -v update-alternatives >/dev/null 2>&1; then
		update-alternatives --remove "$name" "$target" >/dev/null 2>&1 || true
	elif [ "$(readlink "/usr/bin/$name" 2>/dev/null)" = "$target" ]; then
		rm -f "/usr/bin/$name" "$share/man/man1/$name.1.gz" "$share/bash-completion/completions/$name"
	fi
done <"$share/berth/commands"
exit 0
