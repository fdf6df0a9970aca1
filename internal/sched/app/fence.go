package app

import (
	"net/http"

	"k8s.io/client-go/rest"

	"github.com/berth-hpc/berth/internal/sched/fence"
)

// fenced returns the connection for everything that the leader does.
func (e *election) fenced(kube *rest.Config) *rest.Config {
	kube = rest.CopyConfig(kube)
	kube.Wrap(func(next http.RoundTripper) http.RoundTripper { return &fence.Transport{Next: next, Holds: e.holds} })
	return kube
}

// holds reports whether this process certainly holds the lease: it has renewed it within
// the last nine tenths of its duration, by the monotonic clock, which also counts while
// the process is stopped.
func (e *election) holds() bool {
	return e.elector.IsLeader() && e.elector.Check(-e.lease/10) == nil
}
