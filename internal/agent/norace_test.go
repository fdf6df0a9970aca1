//go:build !race

package agent_test

var raceFlag []string
