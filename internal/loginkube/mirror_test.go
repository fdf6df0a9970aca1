package loginkube

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestALoginWaitsForTheFirstAnswer: a server that has only just started
// refused whoever came before the API server's first answer.
func TestALoginWaitsForTheFirstAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &mirror[int]{first: make(chan struct{})}
		if m.fresh() == nil {
			t.Error("relied on without an answer")
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
