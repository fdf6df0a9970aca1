//go:build race

package backfill

// raceDetector: the tests run ten times as slowly.
const raceDetector = true
