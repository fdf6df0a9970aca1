package cluster

import (
	"fmt"
	"maps"
	"strings"
	"sync"
)

// Classes of injected faults.
const (
	Killed  = "processes killed"
	Stopped = "processes stopped"
	Cut     = "networks cut"
	Altered = "answers altered"
	Others  = "others"
)

// tally counts injected faults by class and kind. It is safe for concurrent use.
type tally struct {
	mu sync.Mutex
	n  map[string]map[string]int
}

func (t *tally) add(class, kind string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n == nil {
		t.n = map[string]map[string]int{}
	}
	if t.n[class] == nil {
		t.n[class] = map[string]int{}
	}
	t.n[class][kind]++
}

// Count counts an injected fault that this package does not count by itself.
func (c *Cluster) Count(class, kind string) { c.tally.add(class, kind) }

// Injected returns the numbers of faults so far, by class and kind.
func (c *Cluster) Injected() map[string]map[string]int {
	c.tally.mu.Lock()
	defer c.tally.mu.Unlock()
	out := map[string]map[string]int{}
	for class, kinds := range c.tally.n {
		out[class] = maps.Clone(kinds)
	}
	return out
}

// count counts an answer that was altered.
func (p *Proxy) count(q Request, t Trouble) {
	kind := t.kind()
	if kind == "" {
		return
	}
	whose := p.whose
	if strings.Contains(q.Path, "/leases/") {
		whose += "'s lease"
	}
	p.tally.add(Altered, whose+": "+kind)
}

// kind says what happened to the answer; "": nothing that counts. Requests that hang until
// their client gives up are counted as one cut network.
func (t Trouble) kind() string {
	switch {
	case t.Gone:
		return "410 to a watch"
	case t.CutAfter > 0:
		return "watch cut"
	case t.Stall > 0:
		return "watch stalled"
	case t.Reset && t.After:
		return "reset after the write"
	case t.Reset && t.Delay > 0:
		return ""
	case t.Reset:
		return "reset instead of the request"
	case t.After:
		return fmt.Sprint(t.Status, " after the write")
	case t.Status != 0:
		return fmt.Sprint(t.Status, " instead of the request")
	case t.Delay > 0:
		return "answer delayed"
	}
	return ""
}
