//go:build race

package agent_test

// raceFlag builds the programs under test as the test itself is built.
var raceFlag = []string{"-race"}
