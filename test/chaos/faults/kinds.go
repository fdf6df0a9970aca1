package faults

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/berth-hpc/berth/test/chaos/cluster"
)

// patience is how long a cluster may take to be whole again.
const patience = 2 * time.Minute

// Kinds lists them all, those first that are most likely to do harm.
var Kinds = []Kind{
	{"leader", "SIGKILL of the scheduler that leads", 6, standbyReady, killLeader},
	{"standby", "SIGKILL of the scheduler that waits to lead", 1, hasStandby, killStandby},
	{"both", "SIGKILL of both schedulers", 1, hasStandby, killBoth},
	{"reader", "SIGKILL of the process that answers queries", 2, hasReader, killReader},
	{"pause", "SIGSTOP of the leader for longer than its lease, then SIGCONT", 3, nil, pauseLeader},
	{"control-plane", "SIGKILL of API server, etcd, controllers and nodes; then berth up", 2, nil, killControlPlane},
	{"etcd-member", "SIGKILL of one of several members of etcd", 4, etcdSettled, killEtcdMember},
	{"etcd-pause", "SIGSTOP of one of several members of etcd, then SIGCONT", 3, etcdSettled, pauseEtcdMember},
	{"etcd", "SIGKILL of all members of etcd; the API server's process stays", 2, etcdSettled, killEtcd},
	{"upgrade", "a scheduler ends, and another version of it starts in its place", 3, hasPrevious, changeVersion},
	{"agent", "SIGKILL of an agent", 4, nil, killAgent},
	{"node", "a node is set DOWN, then resumed", 3, nil, nodeDown},
	{"database", "SIGKILL of PostgreSQL, which comes back seconds later", 3, hasDatabase, killDatabase},
	{"disk-full", "no room in the state directory (etcd, accounting) for seconds", 1, hasSmallDisk, fillDisk},
	{"disk-read-only", "the file system of the state directory becomes read-only, and is repaired", 2, hasDisk, failDisk},
	{"login", "SIGKILL of the login node while users submit there", 4, hasLogin, killLogin},
	{"agents-cut", "the agents' connections to the leader are closed, and new ones for seconds", 3, nil, cutAgents},
	{"delays", "the API server answers the scheduler late", 2, nil, requests(ofScheduler, delay)},
	{"resets", "connections to the API server are reset before the request", 2, nil, requests(ofScheduler,
		func(*rand.Rand) cluster.Trouble { return cluster.Trouble{Reset: true} })},
	{"errors", "409, 429, 500, 503 instead of the request", 3, nil, requests(ofScheduler, reject)},
	{"lost-answers", "writes are done, and the answer is 500, 504 or a reset", 5, nil, writes(ofScheduler, loseAnswer)},
	{"watches", "all watches are cut, several times", 2, nil, cutWatches},
	{"gone", "all watches are cut, and new ones get 410 Gone", 2, nil, watchesGone},
	{"users-errors", "users' commands get 429, 500, 503 or a reset instead of what they request", 2, hasUsers,
		requests(ofUsers, refuse)},
	{"users-lost-answers", "what users' commands request is done, and the answer is 500, 504 or a reset", 4, hasUsers,
		writes(ofUsers, loseAnswer)},
	{"silence", "the scheduler gets no answer of the API server at all", 2, nil, silence},
}

func loseAnswer(r *rand.Rand) cluster.Trouble {
	if n := r.IntN(3); n < 2 {
		return cluster.Trouble{After: true, Status: []int{500, 504}[n]}
	}
	return cluster.Trouble{After: true, Reset: true}
}

func delay(r *rand.Rand) cluster.Trouble {
	return cluster.Trouble{Delay: time.Duration(r.IntN(1500)) * time.Millisecond}
}

func reject(r *rand.Rand) cluster.Trouble {
	return cluster.Trouble{Status: []int{409, 429, 500, 503}[r.IntN(4)]}
}

func refuse(r *rand.Rand) cluster.Trouble {
	if n := r.IntN(4); n < 3 {
		return cluster.Trouble{Status: []int{429, 500, 503}[n]}
	}
	return cluster.Trouble{Reset: true}
}

func hasUsers(c *cluster.Cluster) bool    { return len(c.UserProxy) > 0 }
func hasStandby(c *cluster.Cluster) bool  { return len(c.Schedulers) > 1 }
func hasReader(c *cluster.Cluster) bool   { return len(c.Readers) > 0 }
func hasDatabase(c *cluster.Cluster) bool { return c.Database != nil }

func hasPrevious(c *cluster.Cluster) bool  { return c.Previous != "" }
func hasLogin(c *cluster.Cluster) bool     { return c.Login }
func hasSmallDisk(c *cluster.Cluster) bool { return c.SmallDisk }

// hasDisk: members of etcd outside of the control plane hold the disk.
func hasDisk(c *cluster.Cluster) bool { return c.Disk && len(c.Etcd) == 0 }

// between returns a random duration.
func between(r *rand.Rand, low, high time.Duration) time.Duration {
	return low + time.Duration(r.Int64N(int64(high-low)))
}

// leader returns the leader, and waits for one if there is none.
func leader(ctx context.Context, c *cluster.Cluster) (*cluster.Process, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return c.AwaitLeader(ctx, nil)
}

// whole waits until the cluster answers and a job can be submitted.
func whole(ctx context.Context, c *cluster.Cluster) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		if a := c.Run(ctx, c.Operator, "sbatch", "--test-only", "-n1", "--mem=10", "--wrap", "true"); a.Exit == 0 {
			return nil
		} else if time.Now().After(deadline) {
			return fmt.Errorf("the cluster takes no jobs: %s", a.Err)
		}
	}
}

// standbyReady waits until the standby follows the leader, if there is one.
func standbyReady(c *cluster.Cluster) bool {
	awaitSettled(c.Schedulers)
	return true
}

// etcdSettled waits until all members of etcd are there, so that one can be lost; it is false
// for a cluster without members.
func etcdSettled(c *cluster.Cluster) bool {
	awaitSettled(c.Etcd)
	return len(c.Etcd) > 1
}

// awaitSettled waits until the processes have run for long enough, or not much longer.
func awaitSettled(processes []*cluster.Process) {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if !slices.ContainsFunc(processes, func(p *cluster.Process) bool { return !p.Settled() }) {
			return
		}
	}
}

// killLeader kills the leader alone; "both" leaves no standby.
func killLeader(ctx context.Context, c *cluster.Cluster, r *rand.Rand) (string, error) {
	p, err := leader(ctx, c)
	if err != nil {
		return "", err
	}
	away := between(r, 0, 3*time.Second)
	if hasStandby(c) && r.IntN(2) == 0 {
		away = 8 * time.Second
	}
	if err := p.Kill(away); err != nil {
		return p.Name, err
	}
	return p.Name, whole(ctx, c)
}

func killStandby(ctx context.Context, c *cluster.Cluster, r *rand.Rand) (string, error) {
	p, err := leader(ctx, c)
	if err != nil {
		return "", err
	}
	for _, s := range c.Schedulers {
		if s != p {
			return s.Name, s.Kill(between(r, 0, time.Second))
		}
	}
	return "", errors.New("no standby")
}

func killBoth(ctx context.Context, c *cluster.Cluster, r *rand.Rand) (string, error) {
	for _, s := range c.Schedulers {
		if err := s.Kill(between(r, 0, 2*time.Second)); err != nil {
			return s.Name, err
		}
	}
	return "", whole(ctx, c)
}

// killEtcdMember kills one member: the others, a majority, go on.
func killEtcdMember(ctx context.Context, c *cluster.Cluster, r *rand.Rand) (string, error) {
	p := c.Etcd[r.IntN(len(c.Etcd))]
	if err := p.Kill(between(r, 0, 6*time.Second)); err != nil {
		return p.Name, err
	}
	return p.Name, whole(ctx, c)
}

// pauseEtcdMember stops one member for longer than an election takes.
func pauseEtcdMember(ctx context.Context, c *cluster.Cluster, r *rand.Rand) (string, error) {
	p := c.Etcd[r.IntN(len(c.Etcd))]
	if err := p.Pause(); err != nil {
		return p.Name, err
	}
	time.Sleep(between(r, time.Second, 6*time.Second))
	if err := p.Continue(); err != nil {
		return p.Name, err
	}
	return p.Name, whole(ctx, c)
}

// killEtcd kills all members, which come back one after the other.
func killEtcd(ctx context.Context, c *cluster.Cluster, r *rand.Rand) (string, error) {
	for _, p := range c.Etcd {
		if err := p.Kill(between(r, 0, 4*time.Second)); err != nil {
			return p.Name, err
		}
	}
	return "all", whole(ctx, c)
}

func killReader(ctx context.Context, c *cluster.Cluster, r *rand.Rand) (string, error) {
	p := c.Readers[r.IntN(len(c.Readers))]
	if err := p.Kill(between(r, 0, 2*time.Second)); err != nil {
		return p.Name, err
	}
	return p.Name, whole(ctx, c)
}

// changeVersion replaces the leader, or the standby, in either direction.
func changeVersion(ctx context.Context, c *cluster.Cluster, r *rand.Rand) (string, error) {
	p := c.Schedulers[r.IntN(len(c.Schedulers))]
	bin := c.Previous
	if p.Bin() == bin {
		bin = c.Bin
	}
	if err := p.Replace(bin); err != nil {
		return p.Name, err
	}
	c.Count(cluster.Others, "version of a scheduler changed")
	return p.Name + " of " + bin, whole(ctx, c)
}

// pauseLeader: the leader does not know that it was stopped.
func pauseLeader(ctx context.Context, c *cluster.Cluster, r *rand.Rand) (string, error) {
	p, err := leader(ctx, c)
	if err != nil {
		return "", err
	}
	if err := p.Pause(); err != nil {
		return p.Name, err
	}
	if hasStandby(c) {
		waiting, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		if _, err := c.AwaitLeader(waiting, p); err != nil {
			return p.Name, err
		}
		time.Sleep(between(r, 0, 2*time.Second))
	} else {
		time.Sleep(between(r, 10*time.Second, 15*time.Second))
	}
	if err := p.Continue(); err != nil {
		return p.Name, err
	}
	return p.Name, whole(ctx, c)
}

func killControlPlane(ctx context.Context, c *cluster.Cluster, r *rand.Rand) (string, error) {
	if err := c.KillControlPlane(); err != nil {
		return "", err
	}
	time.Sleep(between(r, 0, time.Second))
	if err := c.Up(ctx); err != nil {
		return "", err
	}
	return "", whole(ctx, c)
}

// killAgent gives the cluster a moment to notice.
func killAgent(_ context.Context, c *cluster.Cluster, r *rand.Rand) (string, error) {
	agents := c.Agents()
	if len(agents) == 0 {
		return "none", nil
	}
	pid := agents[r.IntN(len(agents))]
	c.KillAgent(pid)
	time.Sleep(2 * time.Second)
	return fmt.Sprint("process ", pid), nil
}

func nodeDown(ctx context.Context, c *cluster.Cluster, r *rand.Rand) (string, error) {
	names := slices.Sorted(maps.Keys(c.Shape()))
	name := names[r.IntN(len(names))]
	if err := update(ctx, c, name, "state=down", "reason=chaos"); err != nil {
		return name, err
	}
	c.Count(cluster.Others, "node set DOWN")
	time.Sleep(between(r, time.Second, 5*time.Second))
	return name, update(ctx, c, name, "state=resume")
}

// update changes a node, also while the scheduler is away.
func update(ctx context.Context, c *cluster.Cluster, node string, change ...string) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(200 * time.Millisecond) {
		a := c.Run(ctx, c.Operator, "scontrol", append([]string{"update", "nodename=" + node}, change...)...)
		if a.Exit == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("scontrol update: %s", a.Err)
		}
	}
}

func killDatabase(_ context.Context, c *cluster.Cluster, r *rand.Rand) (string, error) {
	if err := c.Database.Kill(); err != nil {
		return "", err
	}
	time.Sleep(between(r, 0, 4*time.Second))
	return "", c.Database.Start()
}

// fillDisk starts the control plane again if it gave up.
func fillDisk(ctx context.Context, c *cluster.Cluster, r *rand.Rand) (string, error) {
	free, err := c.FillDisk()
	if err != nil {
		return "", err
	}
	c.Count(cluster.Others, "file system full")
	time.Sleep(between(r, time.Second, 5*time.Second))
	free()
	target := "survived"
	if !c.Runs() {
		target = "the control plane ended"
		if err := c.Up(ctx); err != nil {
			return target, err
		}
	}
	return target, whole(ctx, c)
}

// failDisk lets an operator repair the disk after seconds.
func failDisk(ctx context.Context, c *cluster.Cluster, r *rand.Rand) (string, error) {
	if err := c.FailDisk(); err != nil {
		return "", err
	}
	c.Count(cluster.Others, "file system read-only")
	time.Sleep(between(r, time.Second, 5*time.Second))
	target := "the control plane ended"
	if c.Runs() {
		target = "the control plane ran on"
	}
	if err := c.RepairDisk(ctx); err != nil {
		return target, err
	}
	return target, whole(ctx, c)
}

func killLogin(ctx context.Context, c *cluster.Cluster, r *rand.Rand) (string, error) {
	time.Sleep(between(r, 0, time.Second)) // at any moment of a session
	return "", c.KillLogin(ctx)
}

func cutAgents(ctx context.Context, c *cluster.Cluster, r *rand.Rand) (string, error) {
	n := c.CutAgents(between(r, 0, 5*time.Second))
	return fmt.Sprint(n, " connections"), whole(ctx, c)
}
