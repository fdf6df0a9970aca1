//go:build race

package simulation

// raceDetector reports that the tests run with the race detector, ten times slower.
const raceDetector = true
