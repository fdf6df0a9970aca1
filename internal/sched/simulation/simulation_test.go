package simulation

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// parameters are those of one simulation. The zero value of a fault means that it does
// not happen.
type parameters struct {
	jobs, nodes int
	faults      int // how many times a fault of cluster or process happens
	// answers is how many of 1,000 requests to the API server fail, half of them after
	// the write has happened.
	answers int
	// clock is how far the clocks of the machines differ, and jump most of the time.
	clock time.Duration
	// quiet: no node and no pod fails, so that nothing else requeues a job.
	quiet bool
	// queue is how many jobs the users keep in the cluster; 0: they act at random.
	queue       int
	preemptType string
	accounting  bool // there is a database
	pool        int  // how many of the nodes run only while jobs need them
}

// simulation is one run of the cluster. Its goroutine is the only one that acts: it
// waits until all others are blocked, and then chooses one of the things that can happen
// next. So a seed decides the order of everything.
type simulation struct {
	t      *testing.T
	random *rand.Rand
	parameters
	api       *apiServer
	leader    *process   // nil: there is none
	former    []*process // they have lost their lease
	processes int
	restart   time.Time // when the next process starts, if there is none
	// latestRead is the latest time that the clock of a process has shown that jumped since,
	// or ended.
	latestRead time.Time
	jumping    bool // clocks jump, or did
	lastID     int64
	database   string // its address; "": there is none
	steps      int

	machine machine
	users   users
	truth   truth

	nextUser, nextFault time.Time
	trace               []string
	digest              io.Writer
	sum                 func() uint64
	faultsDone          map[string]int
	wake                chan struct{}
}

// choice is something that can happen next.
type choice struct {
	name   string
	weight int
	do     func()
}

func newSimulation(t *testing.T, seed uint64, p parameters) *simulation {
	h := fnv.New64a()
	s := &simulation{
		t: t, random: rand.New(rand.NewPCG(seed, 0)), parameters: p, jumping: p.clock > 0, api: newAPIServer(),
		digest: h, sum: h.Sum64, faultsDone: map[string]int{}, wake: make(chan struct{}, 1),
	}
	s.machine = newMachine(s)
	s.users = users{sim: s}
	s.truth = newTruth(s)
	s.api.changed = s.truth.changed
	if p.accounting {
		s.openDatabase()
	}
	if p.pool > 0 {
		s.api.put(s.newPool())
	}
	for i := range p.nodes - p.pool {
		s.api.put(node(i, true))
	}
	return s
}

func (s *simulation) nextID() int64 { s.lastID++; return s.lastID }

// between returns a random duration.
func (s *simulation) between(least, most time.Duration) time.Duration {
	return least + time.Duration(s.random.Int64N(int64(most-least)+1))
}

// chance reports whether one in n happens.
func (s *simulation) chance(n int) bool { return s.random.IntN(n) == 0 }

func pick[T any](r *rand.Rand, from []T) (one T, ok bool) {
	if len(from) == 0 {
		return one, false
	}
	return from[r.IntN(len(from))], true
}

// run simulates users and faults, then waits until every job has ended, and returns what is wrong.
func (s *simulation) run() {
	s.leader = s.start()
	s.nextUser, s.nextFault = time.Now(), time.Now().Add(s.between(0, time.Minute))
	for !s.users.done() || s.faults > 0 {
		s.step(true)
		if len(s.truth.violations) > 0 {
			return
		}
		if s.steps > maxSteps {
			s.truth.violate("no end after %d steps", s.steps)
			return
		}
	}
	s.settle()
}

// maxSteps bounds a simulation that does not end.
const maxSteps = 100_000

// settle ends the faults and waits until every job has ended and is gone.
func (s *simulation) settle() {
	s.answers, s.clock = 0, 0
	s.users.deleteReservations()
	if s.pool > 0 {
		s.resumeNodes()
	}
	for _, name := range s.machine.lostNodes() {
		s.machine.restore(name)
	}
	start := time.Now()
	cancelled, repaired := false, time.Time{}
	for {
		s.step(false)
		if time.Since(repaired) > 10*time.Minute {
			s.machine.repairNodes()
			repaired = time.Now()
		}
		switch over := time.Since(start); {
		case len(s.truth.violations) > 0 || s.truth.settled():
			return
		case over > 24*time.Hour || s.steps > maxSteps:
			s.truth.unsettled()
			return
		case over > 2*time.Hour && !cancelled: // held jobs, and those whose dependency is never satisfied
			s.users.cancelPending()
			cancelled = true
		}
	}
}

// step makes one thing happen, or time pass. active: users and faults act, too.
func (s *simulation) step(active bool) {
	synctest.Wait()
	s.endFormer()
	s.steps++
	choices := s.choices(active)
	total := 0
	for _, c := range choices {
		total += c.weight
	}
	if total == 0 {
		s.idle(active)
		return
	}
	const weightOfTime = 2
	n := s.random.IntN(total + weightOfTime)
	for _, c := range choices {
		if n < c.weight {
			s.record(c.name)
			c.do()
			return
		}
		n -= c.weight
	}
	time.Sleep(s.between(time.Millisecond, 20*time.Millisecond))
}

// idle waits until something can happen.
func (s *simulation) idle(active bool) {
	d := s.machine.nextDue()
	if active {
		d = min(d, time.Until(s.nextUser))
		if s.faults > 0 {
			d = min(d, time.Until(s.nextFault))
		}
	}
	if s.leader == nil {
		d = min(d, time.Until(s.restart))
	} else {
		d = min(d, s.leader.silenceEnds())
	}
	for _, p := range s.former {
		d = min(d, time.Until(p.lease.ends), p.silenceEnds())
	}
	select {
	case <-s.wake:
	case <-time.After(max(d, time.Millisecond)):
	}
}

// wakeUp ends idle. Any goroutine may call it.
func (s *simulation) wakeUp() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *simulation) record(what string) {
	line := fmt.Sprintf("%s %s", time.Now().Format("15:04:05.000"), what)
	s.trace = append(s.trace, line)
	_, _ = io.WriteString(s.digest, line+"\n") // a hash takes everything
}

// choices returns what can happen next, in an order that depends on the seed alone.
func (s *simulation) choices(active bool) []choice {
	var all []choice
	if s.leader != nil {
		all = append(all, s.processChoices(s.leader)...)
	} else if !time.Now().Before(s.restart) {
		all = append(all, choice{"start a process", 10, s.lead})
	}
	for _, p := range s.former {
		if !p.lease.frozen {
			all = append(all, s.processChoices(p)...)
		}
	}
	all = append(all, s.machine.choices()...)
	if active && !time.Now().Before(s.nextUser) {
		all = append(all, choice{"user", 10, s.users.act})
	}
	if active && s.faults > 0 && !time.Now().Before(s.nextFault) {
		all = append(all, choice{"fault", 10, s.fault})
	}
	return all
}

// processChoices are the answers, events and commands that a process can receive or send.
func (s *simulation) processChoices(p *process) (all []choice) {
	p.mu.Lock()
	commands := slices.Clone(p.commands)
	p.mu.Unlock()
	former := ""
	if p != s.leader {
		former = fmt.Sprintf(" (process %d)", p.number)
	}
	for _, r := range p.pending() {
		all = append(all, choice{r.what + former, 10, func() { s.answer(r) }})
	}
	all = append(all, s.watchChoices(p, former)...)
	return append(all, s.machine.commandChoices(p, commands)...)
}

// errLost is the error of a request whose answer was lost.
var errLost = errors.New("http2: client connection lost")

// answer performs a request and answers it, or makes it fail before or after.
func (s *simulation) answer(r *request) {
	r.process.take(r)
	if s.random.IntN(1000) < s.answers {
		s.faultsDone["answers that fail"]++
		errs := []error{
			errLost, apierrors.NewTooManyRequests("try again", 1), apierrors.NewInternalError(errLost),
			apierrors.NewServerTimeout(resourceOf(objectKey{kind: "etcd"}), "write", 1),
			apierrors.NewServiceUnavailable("no leader"), conflict(objectKey{kind: "etcd"}),
		}
		err, _ := pick(s.random, errs)
		if s.chance(2) {
			s.truth.performed(r)
			_, _ = r.perform() // it is done, and the client does not get the result
			s.record("... and the answer is lost")
		} else {
			s.record("... fails")
		}
		r.answer <- answer{err: err}
		return
	}
	s.truth.performed(r)
	o, err := r.perform()
	r.answer <- answer{o, err}
}

// fault makes one fault happen.
func (s *simulation) fault() {
	s.faults--
	s.nextFault = time.Now().Add(s.between(0, 2*time.Minute))
	names := []string{"process killed", "lease lost", "watch broken", "reboot requested"}
	if !s.quiet {
		names = append(names, "node lost", "pod evicted", "agent killed")
	}
	if s.clock > 0 {
		names = append(names, "clock jumps")
	}
	name, _ := pick(s.random, names)
	happened := true
	switch name {
	case "process killed":
		happened = s.killLeader()
	case "lease lost":
		happened = s.loseLease()
	case "reboot requested":
		happened = s.machine.requestReboot()
	case "node lost":
		happened = s.machine.lose()
	case "pod evicted":
		happened = s.machine.evict()
	case "agent killed":
		happened = s.machine.killAgent()
	case "watch broken":
		happened = s.breakWatch()
	case "clock jumps":
		s.jump()
	}
	if happened {
		s.faultsDone[name]++
		s.record("fault: " + name)
	}
}

// killLeader kills the leader. Some of its requests may still be performed.
func (s *simulation) killLeader() bool {
	p := s.leader
	if p == nil {
		return false
	}
	requests := p.pending()
	s.leader = nil
	p.crash()
	for _, r := range requests {
		if s.chance(2) {
			_, _ = r.perform() // it was under way
		}
	}
	s.restart = time.Now().Add(s.between(0, 30*time.Second))
	return true
}

// result is what a simulation did.
type result struct {
	violations []string
	trace      []string
	digest     uint64
	jobs, runs int
	steps      int
	faults     map[string]int
	states     map[string]int
	seen       map[string]int
	virtual    time.Duration
}

// simulate runs one simulation.
func simulate(t *testing.T, seed uint64, p parameters) (r result) {
	t.Helper()
	// A garbage collection would change the order of goroutines.
	defer runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		s := newSimulation(t, seed, p)
		s.run()
		for _, p := range append(s.former, s.leader) {
			if p != nil {
				p.crash()
			}
		}
		time.Sleep(time.Second) // until the goroutines of their servers have noticed
		synctest.Wait()
		s.truth.checkRecords()
		r = result{
			violations: s.truth.violations, trace: s.trace, digest: s.sum(), jobs: int(s.lastID),
			runs: s.truth.runs, steps: s.steps, faults: s.faultsDone, states: s.truth.states, seen: s.truth.seen,
			virtual: time.Since(start),
		}
	})
	return r
}

// tail returns the end of a trace.
func (r *result) tail(n int) string { return strings.Join(r.trace[max(0, len(r.trace)-n):], "\n") }

var _ client.Client = (*apiClient)(nil)
