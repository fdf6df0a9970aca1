package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strings"
	"sync"
	"time"
)

// queued is a job of the prepared queue, in the order of submission.
type queued struct {
	name   string
	second bool // by the second user
	args   string
	// awaited is the state that the job must reach before the next is submitted; "": none.
	awaited string
}

// queue has jobs of the states and reasons that a test can bring about. {NAME} in args is
// the id of an earlier job, and · is a space within a word. Jobs have different nice
// values, so that no two pending ones have the same priority and the order of the list is
// defined, also where a quarter of the weight of the fair share (250) separates the users.
var queue = []queued{
	{"done", false, "-J done --wrap true", "COMPLETED"},
	{"failed", false, "-J failed --wrap exit·3", "FAILED"},
	{"running", false, "-J run -w n1 -n2 -t600 --wrap sleep·36000", "RUNNING"},
	{"steps", false, "-J steps -w n2 -n2 -t600 --nice=50 --comment=c --gres=gpu:1 --wrap srun·-n1·sleep·36000", "RUNNING"},
	{"theirs", true, "-J theirs -w n3 -t600 -n2 --nice=310 --wrap sleep·36000", "RUNNING"},
	{"cancelled", false, "-J gone -w n1 -t600 --wrap sleep·36000", "RUNNING"},
	{"held", false, "-H -J held -n2 -t10 --wrap true", "PENDING"},
	{"begin", false, "-b now+30days -J begin -p batch --wrap true", "PENDING"},
	{"dependent", false, "-d afterok:{running} --nice=20 -J dependent --wrap true", "PENDING"},
	{"never", false, "-d afterok:{failed} --nice=40 --kill-on-invalid-dep=no -J never --wrap true", "PENDING"},
	{"array", false, "-H -a 0-5%2 -J array --wrap true", "PENDING"},
	{"het", false, "-H -J het -n1 : -N2 --wrap true", "PENDING"},
	{"account", false, "-H -A other -J other -C fast&red -x n2 --nice=5 --wrap true", "PENDING"},
	{"heldtheirs", true, "-H -J theirs2 -q normal --mail-type=END --wrap true", "PENDING"},
	{"resources", false, "-w n3 --exclusive --nice=10 -J big -t60 --wrap true", "PENDING"},
}

// onBoth runs f for both systems at the same time.
func (p *pair) onBoth(f func(*side) error) error {
	var wg sync.WaitGroup
	errs := make([]error, 2)
	for i, s := range p.sides() {
		wg.Go(func() { errs[i] = f(s) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// prepare makes the same accounts, reservation and queue on both systems.
func (p *pair) prepare(ctx context.Context) error {
	p.clean()
	if err := p.onBoth(func(s *side) error { return p.awaitEmpty(ctx, s) }); err != nil {
		return err
	}
	since := time.Now().Truncate(time.Second)
	if os.Geteuid() == 0 && p.users[0].Uid != "0" {
		if err := p.onBoth(p.policy); err != nil {
			return err
		}
	}
	for _, q := range queue {
		u := p.users[0]
		if q.second {
			u = p.users[1]
		}
		if err := p.onBoth(func(s *side) error { return p.submit(ctx, s, u, &q) }); err != nil {
			return err
		}
	}
	if err := p.sameWidths(); err != nil {
		return err
	}
	return p.onBoth(func(s *side) error {
		if o := s.run(p.users[0], nil, "", "scancel", s.jobs["cancelled"]); o.code != 0 {
			return fmt.Errorf("%s: scancel: %s", s.name, o.err)
		}
		s.since = since.Format("2006-01-02T15:04:05")
		if err := s.await(ctx, p.users[0], "cancelled", "CANCELLED"); err != nil {
			return err
		}
		return s.awaitRecord(ctx, "resources")
	})
}

// sameWidths returns an error if the ids of a job have different numbers of digits: then
// lists differ because of that alone.
func (p *pair) sameWidths() error {
	for _, q := range queue {
		a, b := p.slurm.jobs[q.name], p.berth.jobs[q.name]
		if len(a) != len(b) {
			return fmt.Errorf("job %s is %s in Slurm and %s in Berth: the ids must have the same number of digits "+
				"(without --state-dir they have)", q.name, a, b)
		}
	}
	return nil
}

// awaitEmpty waits until a system has forgotten the jobs of an earlier run (MinJobAge).
func (p *pair) awaitEmpty(ctx context.Context, s *side) error {
	for {
		o := s.run(nil, nil, "", "squeue", "-h", "-t", "all", "-o", "%i")
		if o.code == 0 && o.out == "" {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s still lists jobs: %s", s.name, o.err)
		case <-time.After(2 * time.Second):
		}
	}
}

// policy makes, as root, two accounts with the users, a QOS, and a reservation.
func (p *pair) policy(s *side) error {
	in := " cluster=" + p.cluster
	first, second := p.users[0].Username, p.users[1].Username
	for _, line := range []string{
		"sacctmgr -i -Q add account science Description=science Organization=org" + in,
		"sacctmgr -i -Q add account other Description=other Organization=org" + in,
		"sacctmgr -i -Q modify account where name=science,other set Organization=org", // they may be there already
		// The second user first: Slurm lists the newest user of an account first, Berth by name.
		"sacctmgr -i -Q add user " + second + " account=science" + in,
		"sacctmgr -i -Q add user " + first + " account=science" + in,
		"sacctmgr -i -Q add user " + first + " account=other" + in,
		"sacctmgr -i -Q add qos fast Priority=10 MaxWall=60",
		"scontrol create reservation=later starttime=now+500days duration=60 nodes=n4 users=" + first,
	} {
		words := strings.Fields(line)
		s.run(nil, nil, "", words[0], words[1:]...) // what exists already is an error that does not matter
	}
	if o := s.run(nil, nil, "", "scontrol", "show", "reservation", "later"); o.code != 0 {
		return fmt.Errorf("%s: cannot make the reservation: %s%s", s.name, o.out, o.err)
	}
	return nil
}

// submit submits a job of the queue and waits for its state.
func (p *pair) submit(ctx context.Context, s *side, u *user.User, q *queued) error {
	args := []string{"--parsable", "-D", "/tmp", "-o", "/dev/null"}
	for _, w := range p.substitute(s, strings.Fields(q.args), "") {
		args = append(args, strings.ReplaceAll(w, "·", " "))
	}
	o := s.run(u, nil, "", "sbatch", args...)
	if o.code != 0 {
		return fmt.Errorf("%s: sbatch %s: %s", s.name, q.args, o.err)
	}
	s.jobs[q.name] = strings.TrimSpace(o.out)
	if err := s.await(ctx, u, q.name, q.awaited); err != nil || q.awaited != "RUNNING" {
		return err
	}
	time.Sleep(time.Second) // no two jobs start in the same second: lists are sorted by that
	return nil
}

// await waits until the named job has reached a state.
func (s *side) await(ctx context.Context, u *user.User, name, state string) error {
	deadline := time.Now().Add(time.Minute)
	for {
		o := s.run(u, nil, "", "squeue", "-h", "-t", "all", "-o", "%T", "-j", s.jobs[name])
		if strings.HasPrefix(o.out, state) {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s: job %s is not %s but %s%s", s.name, name, state, o.out, o.err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// awaitRecord waits until the accounting has the named job: Slurm sends it records of
// pending jobs some seconds later.
func (s *side) awaitRecord(ctx context.Context, name string) error {
	deadline := time.Now().Add(time.Minute)
	for {
		o := s.run(nil, nil, "", "sacct", "-n", "-X", "-a", "-o", "jobid", "-S", s.since, "-j", s.jobs[name])
		if strings.TrimSpace(o.out) != "" {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s: no record of job %s: %s", s.name, name, o.err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// clean cancels the jobs of the users and deletes the reservation. What fails here shows
// when the queue is prepared.
func (p *pair) clean() {
	_ = p.onBoth(func(s *side) error {
		for _, u := range p.users {
			s.run(u, nil, "", "scancel", "-u", u.Username)
		}
		if os.Geteuid() == 0 {
			s.run(nil, nil, "", "scontrol", "delete", "reservation=later")
		}
		return nil
	})
}
