// Package fence keeps a scheduler process that may not lead any more from writing.
package fence

import (
	"errors"
	"net/http"
)

// ErrLeaseExpired is the error of a write after the lease has expired.
var ErrLeaseExpired = errors.New("the scheduler's lease has expired: another process may lead")

// Transport refuses the writes of a process that may not lead any more. A process that was
// stopped for longer than its lease (SIGSTOP, a suspended virtual machine) continues where
// it was, and would write what it had decided before the elector notices that another
// process leads: a job could start on CPUs that the other one has given away.
type Transport struct {
	Next http.RoundTripper
	// Holds reports whether the lease is certainly held.
	Holds func() bool
}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead && !t.Holds() {
		if r.Body != nil {
			_ = r.Body.Close() // as a RoundTripper must
		}
		return nil, ErrLeaseExpired
	}
	return t.Next.RoundTrip(r)
}
