// Package completions contains the completion scripts of all commands for bash, zsh and
// fish. The scripts are generated (make generate) and run berth __complete.
package completions

import (
	_ "embed" // the scripts
	"fmt"
)

//go:embed berth.bash
var bash string

//go:embed _berth
var zsh string

//go:embed berth.fish
var fish string

// Script returns the completion script for a shell: bash, zsh or fish.
func Script(shell string) (string, error) {
	switch shell {
	case "bash":
		return bash, nil
	case "zsh":
		return zsh, nil
	case "fish":
		return fish, nil
	}
	return "", fmt.Errorf("no completion for the shell %q: there is one for bash, zsh and fish", shell)
}
