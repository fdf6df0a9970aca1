package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/translate/hostlist"
)

// The suite "topology" compares where jobs are placed on a machine with switches: by Berth's
// planner, by Slurm's topology/tree, and first fit. All three start and end the same jobs in
// the same order, so that nothing but the nodes of the jobs differs. The order is that of a
// replay of KTH-SP2 (berth sim), with a whole node for each processor.
//
// The Slurm in PATH has the machine: idle nodes, and a topology.conf with a single root. Its
// jobs are allocations without a process (salloc --no-shell).
var topologyMarks = marks{"<!-- topology: written by make bench-topology -->\n", "<!-- end of topology -->\n"}

// The part of the trace that is replayed. The machine is busy by then.
const topologyFirst, topologyCount = 5000, 5000

// placer starts jobs on nodes of a machine.
type placer interface {
	// start returns the numbers of the job's nodes.
	start(ctx context.Context, id, nodes int) ([]int, error)
	end(ctx context.Context, id int) error
}

func benchTopology(ctx context.Context, o options) error {
	traces := os.Getenv("BERTH_TEST_TRACES")
	if traces == "" {
		return errors.New("BERTH_TEST_TRACES is not set to the directory of the traces")
	}
	machine, err := machineOfSlurm(ctx)
	if err != nil {
		return err
	}
	moments, err := momentsOf(ctx, o.bin, filepath.Join(traces, "KTH-SP2-1996-2.swf.gz"), len(machine))
	if err != nil {
		return err
	}
	load := firstField("/proc/loadavg")
	flat := slices.Clone(machine)
	for i := range flat {
		flat[i].TopologyPath = nil
	}
	var b strings.Builder
	b.WriteString("| | leaf switches of a job | largest block of free nodes |\n|---|---|---|\n")
	for _, side := range []struct {
		name string
		placer
	}{
		{"Berth", newPlannerPlacer(machine)},
		{"Slurm 22.05.8, topology/tree", &slurmPlacer{machine: machine, ids: map[int]string{}}},
		{"first fit", newPlannerPlacer(flat)},
	} {
		say("%s: %d jobs", side.name, len(moments)/2)
		f, err := place(ctx, side.placer, machine, moments)
		if err != nil {
			return fmt.Errorf("%s: %w", side.name, err)
		}
		fmt.Fprintf(&b, "| %s | %.3f | %.2f nodes |\n", side.name, f.switches, f.block)
	}
	b.WriteString(circumstances(load))
	fmt.Print(b.String())
	if o.page == "" {
		return nil
	}
	return topologyMarks.replace(o.page, b.String())
}

// switchEntry is a line of "scontrol show topology".
var switchEntry = regexp.MustCompile(`(?m)^SwitchName=(\S+) Level=(\d+) LinkSpeed=\d+ Nodes=(\S+)(?: Switches=(\S+))?`)

// machineOfSlurm returns the nodes of Slurm's leaf switches, with one CPU each.
func machineOfSlurm(ctx context.Context) ([]backfill.Node, error) {
	out, err := exec.CommandContext(ctx, "scontrol", "show", "topology").Output()
	if err != nil {
		return nil, fmt.Errorf("scontrol show topology: %w", err)
	}
	above := map[string]string{} // the switch above each switch
	leaves := map[string]string{}
	for _, m := range switchEntry.FindAllStringSubmatch(string(out), -1) {
		if m[2] == "0" {
			leaves[m[1]] = m[3]
		}
		below, err := hostlist.Expand(m[4])
		if err != nil {
			return nil, err
		}
		for _, name := range below {
			above[name] = m[1]
		}
	}
	var machine []backfill.Node
	for name, list := range leaves {
		path := []string{name}
		for up := above[name]; up != ""; up = above[up] {
			path = append([]string{up}, path...)
		}
		nodes, err := hostlist.Expand(list)
		if err != nil {
			return nil, err
		}
		for _, n := range nodes {
			machine = append(machine, backfill.Node{Name: n, CPUs: 1, TopologyPath: path})
		}
	}
	if len(leaves) < 2 {
		return nil, errors.New("the topology of Slurm has fewer than two leaf switches")
	}
	slices.SortFunc(machine, func(a, b backfill.Node) int { return hostlist.Compare(a.Name, b.Name) })
	return machine, nil
}

// moment is the start of a job on nodes, or its end if nodes is 0.
type moment struct {
	at        int64
	id, nodes int
}

// momentsOf returns the starts and ends of jobs in a replay of the trace, in their order. In a
// second, jobs end before others start.
func momentsOf(ctx context.Context, bin, trace string, processors int) ([]moment, error) {
	file, err := os.CreateTemp("", "berth-starts-")
	if err != nil {
		return nil, err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "berth"), "sim", trace, "--policy", "easy-sjbf",
		"--processors", strconv.Itoa(processors), "--first", strconv.Itoa(topologyFirst),
		"--count", strconv.Itoa(topologyCount), "--starts", file.Name())
	cmd.Stderr = os.Stderr
	if _, err := cmd.Output(); err != nil {
		return nil, fmt.Errorf("berth sim: %w", err)
	}
	var out []moment
	for {
		var id, nodes int
		var submit, start, end int64
		if _, err := fmt.Fscan(file, &id, &submit, &start, &end, &nodes); err != nil {
			break
		}
		out = append(out, moment{start, id, nodes}, moment{end, id, 0})
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: no job runs on %d processors", trace, processors)
	}
	slices.SortStableFunc(out, func(a, b moment) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(min(a.nodes, 1), min(b.nodes, 1)))
	})
	return out, nil
}

// placement is what a placer made of the jobs.
type placement struct {
	switches float64 // mean number of leaf switches of the jobs with several nodes
	block    float64 // mean over time of the largest number of free nodes of a leaf
}

// place starts and ends the jobs.
func place(ctx context.Context, p placer, machine []backfill.Node, moments []moment) (placement, error) {
	free, running := map[string]int{}, map[int][]int{}
	for i := range machine {
		free[leafOf(machine, i)]++
	}
	jobs, switches, area := 0, 0, 0.0
	for i, m := range moments {
		if m.nodes == 0 {
			if err := p.end(ctx, m.id); err != nil {
				return placement{}, err
			}
			for _, n := range running[m.id] {
				free[leafOf(machine, n)]++
			}
			delete(running, m.id)
		} else {
			nodes, err := p.start(ctx, m.id, m.nodes)
			if err != nil {
				return placement{}, err
			}
			used := map[string]bool{}
			for _, n := range nodes {
				free[leafOf(machine, n)]--
				used[leafOf(machine, n)] = true
			}
			running[m.id] = nodes
			if m.nodes > 1 {
				jobs, switches = jobs+1, switches+len(used)
			}
		}
		if i+1 < len(moments) {
			largest := 0
			for _, n := range free {
				largest = max(largest, n)
			}
			area += float64(largest) * float64(moments[i+1].at-m.at)
		}
	}
	return placement{
		switches: float64(switches) / float64(max(jobs, 1)),
		block:    area / float64(max(1, moments[len(moments)-1].at-moments[0].at)),
	}, nil
}

// leafOf returns the name of the leaf switch of a node.
func leafOf(machine []backfill.Node, node int) string {
	path := machine[node].TopologyPath
	return path[len(path)-1]
}

// plannerPlacer places jobs as Berth's scheduler does.
type plannerPlacer struct {
	queue *backfill.Queue
	now   int64
}

func newPlannerPlacer(machine []backfill.Node) *plannerPlacer {
	s := &backfill.Snapshot{Now: 1, Nodes: machine, Policy: backfill.DefaultPolicy()}
	return &plannerPlacer{queue: backfill.NewQueue(s), now: 1}
}

func (p *plannerPlacer) start(_ context.Context, id, nodes int) ([]int, error) {
	p.now++
	j := &backfill.Job{ID: int64(id), Duration: backfill.Forever, MinNodes: nodes, MaxNodes: nodes, Exclusive: true}
	p.queue.Submit(j)
	d := p.queue.Decide(p.now)
	if len(d) != 1 || !d[0].StartNow {
		return nil, fmt.Errorf("job %d of %d nodes does not start", id, nodes)
	}
	var out []int
	for _, a := range d[0].Nodes {
		out = append(out, a.Node)
	}
	r := j.Started(&d[0])
	p.queue.Withdraw(j.ID)
	p.queue.Start(&r)
	return out, nil
}

func (p *plannerPlacer) end(_ context.Context, id int) error {
	p.queue.End(int64(id))
	return nil
}

// slurmPlacer places jobs by Slurm.
type slurmPlacer struct {
	machine []backfill.Node
	ids     map[int]string // Slurm's id of each job that runs
}

var granted = regexp.MustCompile(`Granted job allocation (\d+)`)

func (p *slurmPlacer) start(ctx context.Context, id, nodes int) ([]int, error) {
	out, err := exec.CommandContext(ctx, "salloc", "--no-shell", "--exclusive", "--immediate=60",
		"-N", strconv.Itoa(nodes)).CombinedOutput()
	m := granted.FindSubmatch(out)
	if err != nil || m == nil {
		return nil, fmt.Errorf("salloc -N %d: %w: %s", nodes, err, out)
	}
	p.ids[id] = string(m[1])
	list, err := exec.CommandContext(ctx, "squeue", "-h", "-j", p.ids[id], "-o", "%N").Output()
	if err != nil {
		return nil, fmt.Errorf("squeue: %w", err)
	}
	names, err := hostlist.Expand(strings.TrimSpace(string(list)))
	if err != nil {
		return nil, err
	}
	var numbers []int
	for _, name := range names {
		i, ok := slices.BinarySearchFunc(p.machine, name, func(n backfill.Node, name string) int {
			return hostlist.Compare(n.Name, name)
		})
		if !ok {
			return nil, fmt.Errorf("a job is on node %s, which has no switch", name)
		}
		numbers = append(numbers, i)
	}
	return numbers, nil
}

// end returns when the job's nodes are free again.
func (p *slurmPlacer) end(ctx context.Context, id int) error {
	if err := exec.CommandContext(ctx, "scancel", p.ids[id]).Run(); err != nil {
		return fmt.Errorf("scancel: %w", err)
	}
	delete(p.ids, id)
	for ctx.Err() == nil {
		out, err := exec.CommandContext(ctx, "squeue", "-h", "-t", "CG", "-o", "%i").Output()
		if err != nil {
			return fmt.Errorf("squeue: %w", err)
		}
		if len(out) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
		case <-time.After(5 * time.Millisecond):
		}
	}
	return ctx.Err()
}
