package agentapi

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// payloads caches script and environment of the arrays whose tasks started last, so
// that a thousand tasks read them once. They never change; an array that is deleted
// is dropped. Safe for concurrent use.
type payloads struct {
	mu    sync.Mutex
	known []payload // the newest last
}

type payload struct {
	uid                 types.UID
	script, environment []byte
}

// mostPayloads bounds the cache, in entries each as large as an object may be.
const mostPayloads = 8

// of returns the payload of the job with that UID.
func (p *payloads) of(uid types.UID) (payload, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, k := range p.known {
		if k.uid == uid {
			return k, true
		}
	}
	return payload{}, false
}

func (p *payloads) keep(b *v1alpha1.BatchJob) {
	p.forget(b.UID)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known = append(p.known, payload{b.UID, b.Spec.Script, b.Spec.Environment})
	if len(p.known) > mostPayloads {
		p.known = p.known[1:]
	}
}

func (p *payloads) forget(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	kept := make([]payload, 0, mostPayloads+1)
	for _, k := range p.known {
		if k.uid != uid {
			kept = append(kept, k)
		}
	}
	p.known = kept
}

// jobChanged drops the payload of a job that is gone.
func (p *payloads) jobChanged(old, now *v1alpha1.BatchJob) {
	if now == nil {
		p.forget(old.UID)
	}
}
