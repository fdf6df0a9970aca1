package app

import (
	"errors"
	"net/http"

	"k8s.io/client-go/rest"
)

// errFenced is the error of a write after the lease has expired.
var errFenced = errors.New("the scheduler's lease has expired: another process may lead")

// fence refuses the writes of a process that may not lead any more. A process that was
// stopped for longer than its lease (SIGSTOP, a suspended virtual machine) continues where
// it was, and would write what it had decided before the elector notices that another
// process leads: a job could start on CPUs that the other one has given away.
type fence struct {
	next http.RoundTripper
	// holds reports whether the lease is certainly held.
	holds func() bool
}

// RoundTrip implements http.RoundTripper.
func (f *fence) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead && !f.holds() {
		if r.Body != nil {
			_ = r.Body.Close() // as a RoundTripper must
		}
		return nil, errFenced
	}
	return f.next.RoundTrip(r)
}

// fenced returns the connection for everything that the leader does.
func (e *election) fenced(kube *rest.Config) *rest.Config {
	kube = rest.CopyConfig(kube)
	kube.Wrap(func(next http.RoundTripper) http.RoundTripper { return &fence{next, e.holds} })
	return kube
}

// holds reports whether this process certainly holds the lease: it has renewed it within
// the last nine tenths of its duration, by the monotonic clock, which also counts while
// the process is stopped.
func (e *election) holds() bool {
	return e.elector.IsLeader() && e.elector.Check(-e.lease/10) == nil
}
