package simulation

import (
	"os"
	"runtime"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// busy are the parameters of a cluster whose leader lives for hours. Users keep it full, and
// nodes and pods fail from time to time.
var busy = parameters{jobs: 1 << 40, nodes: 10, answers: 20, queue: 60, preemptType: preemptByQOS}

// hours returns how long the test of growth takes, in virtual time, and its parameters:
// SIMULATION_HOURS, or a few hours of a small cluster.
func hours(t *testing.T) (n int, p parameters, tolerance float64) {
	t.Helper()
	text := os.Getenv("SIMULATION_HOURS")
	if text == "" {
		p = busy
		p.nodes, p.queue = 3, 20
		return 3, p, 1.25 // few jobs, of different kinds
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 3 {
		t.Fatalf("SIMULATION_HOURS=%q is not a number of at least 3", text)
	}
	return n, busy, 1.05
}

// sample is what the leader uses at some moment, or the mean of such.
type sample struct {
	bytes, heap   float64 // reachable from the leader's parts; of the whole test
	goroutines    float64
	objects, jobs float64 // of the API server; BatchJobs among them
}

func (s *sample) add(x sample, weight float64) {
	s.bytes += x.bytes * weight
	s.heap += x.heap * weight
	s.goroutines += x.goroutines * weight
	s.objects += x.objects * weight
	s.jobs += x.jobs * weight
}

// samplesOfHour is how often an hour is measured.
const samplesOfHour = 6

// TestNothingGrows keeps a leader busy for hours, and checks that it uses no more memory and
// goroutines in the last one than in the second: the first one fills the caches.
func TestNothingGrows(t *testing.T) {
	if raceDetector || testing.Short() {
		t.Skip("it takes long")
	}
	n, p, tolerance := hours(t)
	synctest.Test(t, func(t *testing.T) {
		s := newSimulation(t, 1, p)
		s.leader = s.start()
		s.nextUser, s.nextFault = time.Now(), time.Now().Add(time.Minute)
		var means []sample
		var early, late *reach
		for h := range n {
			mean, r, ok := s.hour(t, h)
			if !ok {
				return
			}
			if means = append(means, mean); h == 1 {
				early = r
			}
			late = r
		}
		s.leader.crash()
		time.Sleep(time.Second)
		first, last := means[1], means[n-1]
		check := func(what string, a, b, slack float64) {
			if b > a*tolerance+slack {
				t.Errorf("%s: %.0f in hour 2, %.0f in hour %d", what, a, b, n)
			}
		}
		// The queue is not equally long at all times.
		check("bytes reachable from the leader", first.bytes/first.jobs, last.bytes/last.jobs, 0)
		check("goroutines", first.goroutines, last.goroutines, 5)
		check("objects", first.objects, last.objects, 0.1*first.objects)
		// If something of each job stayed, there would be hundreds for each hour.
		for _, name := range late.growth(early, 150) {
			t.Errorf("%s has %d elements, %d in hour 2", name, late.elements[name], early.elements[name])
		}
	})
}

// hour runs the simulation for an hour and returns the mean of what the leader uses.
func (s *simulation) hour(t *testing.T, number int) (mean sample, r *reach, ok bool) {
	t.Helper()
	begin, jobs := time.Now(), s.lastID
	for i := range samplesOfHour {
		for end := begin.Add(time.Duration(i+1) * time.Hour / samplesOfHour); time.Now().Before(end); {
			if s.step(true); len(s.truth.violations) > 0 {
				t.Errorf("hour %d: %v\n%s", number+1, s.truth.violations, (&result{trace: s.trace}).tail(60))
				return mean, nil, false
			}
		}
		s.forget()
		p := s.leader
		r = measure(p.cluster, p.keep, p.plan, p.api, p.starter)
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		mean.add(sample{
			bytes: float64(r.bytes), heap: float64(m.HeapAlloc), goroutines: float64(runtime.NumGoroutine()),
			objects: float64(len(s.api.objects)), jobs: float64(len(s.api.list(kindJob))),
		}, 1.0/samplesOfHour)
	}
	s.users.deleteReservations()
	t.Logf("hour %2d: %5d jobs; %.0f objects, %.0f of them jobs; %.0f goroutines; %.2f MB reachable, heap %.1f MB", number+1,
		s.lastID-jobs, mean.objects, mean.jobs, mean.goroutines, mean.bytes/1e6, mean.heap/1e6)
	return mean, r, true
}

// forget removes what the models remember of jobs that have been gone for an hour, and
// events that the leader has received.
func (s *simulation) forget() {
	s.trace = append([]string(nil), s.trace[max(0, len(s.trace)-1000):]...)
	for _, kind := range []string{kindJobSet, kindPodGroup} { // nobody watches them
		s.api.events[kind] = nil
	}
	for _, kind := range watchedKinds {
		s.api.events[kind] = append([]event(nil), s.api.events[kind][s.leader.delivered[kind]:]...)
		s.leader.delivered[kind] = 0
	}
	needed := s.neededJobs()
	isOver := func(id int64, h *history) bool {
		return !needed[id] && !h.gone.IsZero() && time.Since(h.gone) >= time.Hour
	}
	for id, h := range s.truth.jobs {
		if !isOver(id, h) {
			for _, task := range h.tasks { // jobs may depend on all of them
				needed[task] = true
			}
		}
	}
	for id, h := range s.truth.jobs {
		if !isOver(id, h) {
			continue
		}
		for attempt := range h.placed {
			k := runKey{id, attempt}
			delete(s.machine.agents, k)
			delete(s.machine.reused, k)
			delete(s.truth.first, k)
			for i := range 8 {
				delete(s.machine.created, podName(k, i))
			}
		}
		delete(s.truth.jobs, id)
	}
}

// neededJobs returns the jobs that jobs of the API server refer to.
func (s *simulation) neededJobs() map[int64]bool {
	needed := map[int64]bool{}
	for _, o := range s.api.list(kindJob) {
		b := current(o.(*v1alpha1.BatchJob)) //nolint:forcetypeassert // of that kind
		needed[b.Spec.JobID], needed[b.RunsIn().JobID] = true, true
		if b.Spec.Origin != nil {
			needed[b.Spec.Origin.JobID] = true
		}
		for _, d := range b.Spec.Job.Dependencies.Items {
			needed[d.JobID] = true
			for _, task := range s.truth.of(d.JobID).tasks {
				needed[task] = true
			}
		}
	}
	return needed
}
