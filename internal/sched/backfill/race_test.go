//go:build race

package backfill

// raceDetector reports that the tests run with the race detector, ten times slower.
const raceDetector = true
