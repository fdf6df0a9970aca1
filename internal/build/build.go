// Package build says which release of Berth a binary is, and which release of
// Slurm its commands behave like.
package build

// Version is Berth's own version; the linker sets it (-X).
var Version = "0.1.0-dev"

// Slurm is the release whose names, formats and exit codes are matched.
const Slurm = "22.05.8"
