#!/bin/bash
#SBATCH -J vscode             # keeps CPUs on a node for an editor that connects by ssh (see ssh_config)
#SBATCH -o vscode-%j.out
#SBATCH -t 0-4:00:00
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=2

echo "the editor may connect to $(hostname -s)"
exec sleep infinity
