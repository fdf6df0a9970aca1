#!/bin/sh
# Puts Berth's commands in place under Slurm's names, by alternatives where
# there are such, and never over a file: a Slurm client keeps its own.
set -e
case "${1:-}" in abort-*) exit 0 ;; esac
share=/usr/share
taken=
while read -r name; do
	link=/usr/bin/$name target=/usr/lib/berth/bin/$name
	if [ -e "$link" ] && [ ! -L "$link" ]; then
		taken="$taken $name"
	elif command -v update-alternatives >/dev/null 2>&1; then
		update-alternatives --install "$link" "$name" "$target" 50 \
			--slave "$share/man/man1/$name.1.gz" "$name.1.gz" "$share/berth/man/man1/$name.1.gz" \
			--slave "$share/bash-completion/completions/$name" "$name.bash-completion" "$share/bash-completion/completions/berth" >/dev/null
	elif [ ! -e "$link" ]; then
		ln -s "$target" "$link"
		ln -sf "$share/berth/man/man1/$name.1.gz" "$share/man/man1/$name.1.gz"
		ln -sf berth "$share/bash-completion/completions/$name"
	fi
done <"$share/berth/commands"
if [ -n "$taken" ]; then
	echo "berth: other programs are called$taken; Berth's are in /usr/lib/berth/bin, and 'berth NAME' runs them"
fi
exit 0
