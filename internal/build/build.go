// Package build has the release of Berth of a binary, and the release of Slurm that its
// commands behave like.
package build

// Version is Berth's own version; the linker sets it (-X).
var Version = "0.1.0-dev"

// Slurm is the release whose names, formats and exit codes are matched.
const Slurm = "22.05.8"
