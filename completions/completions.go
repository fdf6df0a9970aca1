// Package completions has the completion of every command for bash, zsh and
// fish. The scripts are generated (make generate); what they offer comes from
// berth __complete.
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

// Script is the completion for a shell: bash, zsh or fish.
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
