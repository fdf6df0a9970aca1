//go:build !race

package backfill

const raceDetector = false
