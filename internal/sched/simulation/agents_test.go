package simulation

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/internal/wire"
)

// agents are those of the pods that an attempt runs in, and its script.
type agents struct {
	mu      sync.Mutex
	asking  bool          // a request waits for its answer
	welcome *wire.Welcome // the job is to be started
	again   time.Time     // when it is repeated, if it failed
	refused bool          // the attempt is over: the agents exit
	acked   bool          // the report is accepted: the agent exits, unless it gets another job

	wantsNext bool          // it requests another job
	next      *wire.Welcome // the other job

	started, ended bool
	terminated     bool
	due            time.Time // when the script ends
	status, signal int32
}

// over reports whether the agents exit, because the attempt is done or was refused.
func (a *agents) over() (done, refused bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.acked && !a.wantsNext && a.next == nil, a.refused
}

func (a *agents) isRefused() bool {
	_, refused := a.over()
	return refused
}

// repeatsAt returns when a request that failed is repeated.
func (a *agents) repeatsAt() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.again
}

func (m *machine) agentsOf(k runKey) *agents {
	if m.agents[k] == nil {
		m.agents[k] = &agents{}
	}
	return m.agents[k]
}

// runIn returns the attempt that runs now in the pods of the attempt host, or ran there last.
func (m *machine) runIn(host runKey) runKey {
	if k, reused := m.reused[host]; reused {
		return k
	}
	return host
}

// gangComplete reports whether an agent runs in each pod and can reach the others.
func (m *machine) gangComplete(pods []*corev1.Pod, n int) bool {
	if len(pods) != n {
		return false
	}
	return !slices.ContainsFunc(pods, func(p *corev1.Pod) bool {
		return p.Status.Phase != corev1.PodRunning || p.DeletionTimestamp != nil || m.isLost(p.Spec.NodeName)
	})
}

// agentChoices are what the agents of a complete gang can do.
func (m *machine) agentChoices(host runKey, pods []*corev1.Pod, add func(string, func())) {
	k := m.runIn(host)
	a := m.agentsOf(k)
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.asking || a.refused || time.Now().Before(a.again):
	case a.next != nil:
		next := runKey{a.next.JobID, a.next.Attempt}
		add("agent of "+k.String()+" continues with "+next.String(), func() { m.startNext(host, next, a.next) })
	case a.acked && !a.wantsNext:
	case a.started && !a.ended:
		if !time.Now().Before(a.due) {
			add("script of "+k.String()+" ends", func() { a.ended = true; m.sim.truth.scriptEnded(k) })
		}
	case a.welcome != nil && !a.started:
		add("start script of "+k.String(), func() { m.startScript(k, a) })
	default:
		m.requestChoices(k, a, pods, add)
	}
}

// requestChoices are the requests of the agents to the processes that they reach.
func (m *machine) requestChoices(k runKey, a *agents, pods []*corev1.Pod, add func(string, func())) {
	for _, p := range m.sim.reachable() {
		former := ""
		if p != m.sim.leader {
			former = fmt.Sprintf(" to process %d", p.number)
		}
		lost := func() bool { return m.sim.random.IntN(1000) < m.sim.answers }
		switch {
		case a.wantsNext:
			add("next job after "+k.String()+former, func() { a.requestNext(p, k, pods[0], lost()) })
		case a.started:
			add("report of "+k.String()+former, func() { a.report(p, k, pods[0], lost()) })
		default:
			add("hello of "+k.String()+former, func() { a.hello(p, k, pods, lost()) })
		}
	}
}

// send calls do, which sends requests of the agents to the process and returns whether they
// are over. Unless the answer is lost or the process is killed, accept handles the answer.
func (a *agents) send(p *process, lost bool, do func() (code int, body []byte), accept func(code int, body []byte)) {
	a.asking = true
	p.running.Go(func() {
		code, body := do()
		defer p.sim.wakeUp()
		a.mu.Lock()
		defer a.mu.Unlock()
		a.asking = false
		if !lost && p.ctx.Err() == nil && (code == http.StatusOK || isFinal(code)) {
			accept(code, body)
		} else {
			a.again = time.Now().Add(agentPause)
		}
	})
}

// agentPause is how long agents wait before they repeat a request.
const agentPause = 200 * time.Millisecond

// isFinal reports whether an agent does not repeat a request with that answer.
func isFinal(code int) bool {
	return code >= 400 && code < 500 && code != http.StatusTooManyRequests && code != http.StatusUnauthorized
}

// hello lets all agents of an attempt report, until they receive the job.
func (a *agents) hello(p *process, k runKey, pods []*corev1.Pod, lost bool) {
	hello := func() (code int, body []byte) {
		codes, bodies := make([]int, len(pods)), make([][]byte, len(pods))
		var wg sync.WaitGroup
		for _, pod := range pods {
			i := indexOf(pod)
			h := wire.Hello{JobID: k.job, Attempt: k.attempt, Index: int32(i), Address: pod.Spec.NodeName + ":1"}
			wg.Go(func() { codes[i], bodies[i] = p.serve(pod, wire.PathHello, h) })
		}
		wg.Wait()
		return slices.Max(codes), bodies[0] // 503 is temporary
	}
	a.send(p, lost, hello, func(code int, body []byte) {
		if a.refused = code != http.StatusOK; !a.refused {
			a.welcome = decoded[wire.Welcome](body)
		}
	})
}

// report reports the end of the script.
func (a *agents) report(p *process, k runKey, pod *corev1.Pod, lost bool) {
	clock := p.sim.machine.clockOf(pod.Spec.NodeName)
	r := wire.Report{JobID: k.job, Attempt: k.attempt, Kind: wire.ReportEnded, Status: a.status, Signal: a.signal,
		Start: clock.now().Add(-time.Second).UnixNano(), End: clock.now().UnixNano()}
	report := func() (int, []byte) { return p.serve(pod, wire.PathReport, r) }
	a.send(p, lost, report, func(code int, body []byte) {
		a.acked = true
		a.wantsNext = code == http.StatusOK && decoded[wire.ReportAnswer](body).Next
	})
}

// requestNext requests another job for the pod.
func (a *agents) requestNext(p *process, k runKey, pod *corev1.Pod, lost bool) {
	q := wire.NextQuery{JobID: k.job, Attempt: k.attempt}
	next := func() (int, []byte) { return p.serve(pod, wire.PathNext, q) }
	a.send(p, lost, next, func(code int, body []byte) {
		if a.wantsNext = false; code == http.StatusOK {
			a.next = decoded[wire.Welcome](body)
		}
	})
}

func decoded[T any](body []byte) *T {
	v := new(T)
	if err := json.Unmarshal(body, v); err != nil {
		panic(err) // the server encoded it
	}
	return v
}

// serve lets the process answer a request of the agent in a pod.
func (p *process) serve(pod *corev1.Pod, path string, message any) (code int, body []byte) {
	encoded, err := json.Marshal(message)
	if err != nil {
		panic(err) // it has numbers and texts only
	}
	r := httptest.NewRequestWithContext(withCaller(p.ctx, "agents"), http.MethodPost, path, bytes.NewReader(encoded))
	r.Header.Set("Authorization", "Bearer "+tokenOf(pod))
	r.RemoteAddr = pod.Name + ":1"
	w := httptest.NewRecorder()
	p.api.ServeHTTP(w, r)
	return w.Code, w.Body.Bytes()
}

// tokenLife is the least time for which the token of a pod is still valid: kubelets replace
// tokens of an hour when a fifth of it is left.
const tokenLife = 12 * time.Minute

// tokenOf returns the token of a pod's service account.
func tokenOf(pod *corev1.Pod) string {
	claims := fmt.Sprintf(`{"iss":"https://api","exp":%[5]d,"sub":"system:serviceaccount:%[1]s:%[2]s",`+
		`"kubernetes.io":{"namespace":%[1]q,"pod":{"name":%[3]q,"uid":%[4]q}}}`,
		pod.Namespace, v1alpha1.ServiceAccountName, pod.Name, pod.UID, time.Now().Add(tokenLife).Unix())
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".e30"
}

// startNext lets the agent in the pod of the attempt host continue with another job.
func (m *machine) startNext(host, k runKey, w *wire.Welcome) {
	m.reused[host] = k
	m.agentsOf(k).welcome = w
	m.sim.truth.podReused(host, k)
}

// startScript starts the script on the CPUs that the welcome names.
func (m *machine) startScript(k runKey, a *agents) {
	b := m.sim.truth.of(k.job).placed[k.attempt]
	if b == nil || a.welcome.JobID != k.job || a.welcome.Attempt != k.attempt {
		m.sim.truth.violate("the agents of %s received attempt %d of job %d", k, a.welcome.Attempt, a.welcome.JobID)
		return
	}
	cpus := map[string]backfill.CPUSet{}
	for _, h := range a.welcome.Hosts {
		set, err := backfill.ParseCPUSet(h.CPUIDs)
		if err != nil {
			m.sim.truth.violate("job %s was allocated CPUs %q", k, h.CPUIDs)
		}
		cpus[h.Name] = set
	}
	a.started = true
	longest := 4 * time.Minute
	if m.sim.queue > 0 {
		longest = 20 * time.Second
	}
	a.due = time.Now().Add(m.sim.between(0, longest))
	if m.sim.chance(6) || isFurther(b) { // it runs into its time limit, or ends with the first component
		a.due = time.Now().Add(24 * time.Hour)
	}
	if m.sim.chance(4) {
		a.status = 1
	}
	m.sim.truth.scriptStarted(k, b, cpus)
}
