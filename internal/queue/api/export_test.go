package api

import "time"

func init() { refusalDelay = time.Millisecond }

// SetPatienceToSend is for tests, before a server starts.
func SetPatienceToSend(d time.Duration) (restore func()) {
	old := patienceToSend
	patienceToSend = d
	return func() { patienceToSend = old }
}
