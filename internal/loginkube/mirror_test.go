package loginkube

import (
	"testing"
	"testing/synctest"
	"time"
)

// A login right after the start of the server waits for the API server's first answer.
func TestLoginWaitsForFirstResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &mirror[int]{first: make(chan struct{})}
		if m.fresh() == nil {
			t.Error("the mirror is fresh without an answer")
		}
		go func() {
			time.Sleep(firstAnswer / 2)
			m.mu.Lock()
			defer m.mu.Unlock()
			m.heard = time.Now()
			close(m.first)
		}()
		if err := m.fresh(); err != nil {
			t.Error(err)
		}
	})
}
