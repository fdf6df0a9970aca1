package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
)

// The suite "size" fills a local cluster with nodes, users and pending jobs, measures the
// commands and the process while the queue grows, and starts the cluster again with all of
// it. Most nodes exist only in the API server (fleet.go). A maintenance of all nodes begins
// before any of the jobs could end, so every job is planned and none starts.
var sizeMarks = marks{"<!-- size: written by make bench-size -->\n", "<!-- end of size -->\n"}

var sizeOptions struct{ jobs, users, nodes int }

func init() {
	flag.IntVar(&sizeOptions.jobs, "jobs", 100_000, "pending jobs of the suite size")
	flag.IntVar(&sizeOptions.users, "users", 1000, "users of the suite size")
	flag.IntVar(&sizeOptions.nodes, "nodes", 5000, "simulated nodes of the suite size")
}

// sizeConf has the nodes on which jobs can run.
const sizeConf = `NodeName=n[1-4] CPUs=4 RealMemory=4000
PartitionName=main Nodes=ALL Default=YES
MaxJobCount=1000000
`

// sizeSteps is how often the queue is measured while it grows.
const sizeSteps = 4

// sizeBench is a cluster that grows.
type sizeBench struct {
	*system
	state  string
	api    *apiClient    // of the administrator
	client client.Client // likewise
	pid    int
	rows   []string
}

func benchSize(ctx context.Context, o options) error {
	busy := firstField("/proc/loadavg")
	b, stop, err := startSized(ctx, o, sizeConf)
	defer stop()
	if err != nil {
		return err
	}
	if err := b.grow(ctx, o.repeat); err != nil {
		return err
	}
	text := "| pending jobs | a submission, 8 at a time | `squeue`, all | `squeue`, one user's | `sbatch` | a plan |" +
		" live heap | resident | goroutines | descriptors | store |\n|---|---|---|---|---|---|---|---|---|---|---|\n" +
		strings.Join(b.rows, "") + circumstances(busy)
	return sizeMarks.publish(o.page, text)
}

// grow makes nodes, users and jobs, and measures in between; then it starts the cluster
// again.
func (b *sizeBench) grow(ctx context.Context, n int) error {
	if err := b.prepare(ctx); err != nil {
		return err
	}
	if err := b.measure(ctx, 0, 0, n); err != nil {
		return err
	}
	step := sizeOptions.jobs / sizeSteps
	for i := range sizeSteps {
		start := time.Now()
		if err := b.submit(ctx, i*step, (i+1)*step); err != nil {
			return err
		}
		if err := b.measure(ctx, (i+1)*step, time.Since(start)/time.Duration(step), n); err != nil {
			return err
		}
	}
	return b.restart(ctx, step*sizeSteps, n)
}

// startSized starts a local cluster with the nodes of a slurm.conf. stop has to be called
// even if there is an error.
func startSized(ctx context.Context, o options, conf string) (b *sizeBench, stop func(), err error) {
	file, err := os.CreateTemp("", "berth-bench-*.conf")
	if err != nil {
		return nil, func() {}, err
	}
	defer os.Remove(file.Name())
	_, err = file.WriteString(conf)
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, func() {}, err
	}
	b = &sizeBench{}
	if b.system, b.state, stop, err = startAlone(ctx, o, "--slurm-conf", file.Name()); err != nil {
		return b, stop, err
	}
	return b, stop, b.connect()
}

// connect finds the process and makes the administrator's clients.
func (b *sizeBench) connect() (err error) {
	if b.pid, err = processOf(b.state); err != nil {
		return err
	}
	kubeconfig := filepath.Join(b.state, "kubeconfig")
	if b.api, err = newAPIClient(kubeconfig); err != nil {
		return err
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	cfg.QPS = -1
	b.client, err = client.New(cfg, client.Options{Scheme: control.NewScheme()})
	return err
}

// prepare creates the nodes, the maintenance and the users.
func (b *sizeBench) prepare(ctx context.Context) error {
	say("%d nodes and %d users", sizeOptions.nodes, sizeOptions.users)
	f, err := newFleet(filepath.Join(b.state, "kubeconfig"), sizeOptions.nodes)
	if err != nil {
		return err
	}
	if err := f.start(ctx); err != nil {
		return err
	}
	err = until(ctx, 5*time.Minute, time.Second, func() (bool, error) {
		out, err := b.output(ctx, "sinfo", "-h", "-t", "idle", "-o", "%D")
		count, _ := strconv.Atoi(out)
		return count == sizeOptions.nodes+4, err
	})
	if err != nil {
		return fmt.Errorf("the nodes are not idle: %w", err)
	}
	if _, err := b.output(ctx, "scontrol", "create", "reservation", "reservationname=size", "starttime=now+1hour",
		"duration=1:00:00", "nodes=ALL", "flags=maint", "users=root"); err != nil {
		return err
	}
	for i := range sizeOptions.users {
		name := sizeUser(i)
		u := &v1alpha1.User{ObjectMeta: metav1.ObjectMeta{Name: name}}
		u.Spec.UID, u.Spec.GID = int64(50_000+i), int64(50_000+i)
		u.Spec.Namespace, u.Spec.Home = "user-"+name, "/tmp"
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: u.Spec.Namespace}}
		if err := errors.Join(b.client.Create(ctx, ns), b.client.Create(ctx, u)); err != nil {
			return err
		}
	}
	return nil
}

func sizeUser(i int) string { return fmt.Sprintf("size%04d", i%sizeOptions.users) }

// newSizeJob returns a job that would reach into the maintenance.
func newSizeJob() []byte {
	return newBatchJob("size", false, 200)
}

// submit submits the jobs with these numbers, in turns for all users.
func (b *sizeBench) submit(ctx context.Context, from, to int) error {
	say("submitting jobs %d to %d", from, to)
	var next atomic.Int64
	next.Store(int64(from))
	var errs [submitters]error
	var wg sync.WaitGroup
	for i := range submitters {
		wg.Go(func() {
			for errs[i] == nil {
				n := int(next.Add(1)) - 1
				if n >= to {
					return
				}
				code := http.StatusTooManyRequests
				for code == http.StatusTooManyRequests && errs[i] == nil {
					code, errs[i] = b.api.do(ctx, http.MethodPost, batchJobsOf(sizeUser(n)), newSizeJob())
				}
				if errs[i] == nil && code != http.StatusCreated {
					errs[i] = fmt.Errorf("a submission was answered %d", code)
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs[:]...)
}

// measure adds a row.
func (b *sizeBench) measure(ctx context.Context, jobs int, each time.Duration, n int) error {
	say("measuring with %d jobs", jobs)
	submission := "–" // none was made
	if each > 0 {
		submission = short(each)
	}
	cells := []string{strconv.Itoa(jobs), submission}
	for _, call := range [][]string{
		{"squeue", "-h"}, {"squeue", "-h", "-u", sizeUser(0)},
		{"sbatch", "--hold", "-o", "/dev/null", "--wrap", "true"},
	} {
		times, err := timed(n, func(int) error {
			_, err := b.output(ctx, call[0], call[1:]...)
			return err
		})
		if err != nil {
			return err
		}
		cells = append(cells, short(times.median())+" / "+short(p99(times)))
	}
	if _, err := b.output(ctx, "scancel", "-u", "root"); err != nil {
		return err
	}
	used, err := b.usage(ctx)
	if err != nil {
		return err
	}
	diagnostics, err := b.output(ctx, "sdiag")
	if err != nil {
		return err
	}
	cells = append(append(cells, lastCycle(diagnostics)), used.cells()...)
	row := "| " + strings.Join(cells, " | ") + " |\n"
	say("%s", strings.TrimSpace(row))
	b.rows = append(b.rows, row)
	return nil
}

// usage is what the cluster's process uses.
type usage struct {
	heap, resident, disk    int64 // bytes: live heap, resident memory, files of the state directory
	goroutines, descriptors int64
}

func (u usage) cells() []string {
	megabytes := func(bytes int64) string { return fmt.Sprintf("%d MB", bytes>>20) }
	return []string{megabytes(u.heap), megabytes(u.resident), strconv.FormatInt(u.goroutines, 10),
		strconv.FormatInt(u.descriptors, 10), megabytes(u.disk)}
}

func (b *sizeBench) usage(ctx context.Context) (u usage, err error) {
	if u.heap, err = b.api.heap(ctx); err != nil {
		return u, err
	}
	routines, err := b.api.get(ctx, "/debug/pprof/goroutine?debug=1")
	if err != nil {
		return u, err
	}
	if _, err := fmt.Sscanf(string(routines), "goroutine profile: total %d", &u.goroutines); err != nil {
		return u, fmt.Errorf("goroutines: %w", err)
	}
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", b.pid))
	u.descriptors, u.resident, u.disk = int64(len(open)), residentOf(b.pid), diskUsage(b.state)
	return u, err
}

// lastCycle is the time of the last plan, by sdiag.
func lastCycle(text string) string {
	for line := range strings.Lines(text) {
		if name, value, _ := strings.Cut(strings.TrimSpace(line), ":"); name == "Mean cycle" {
			micros, _ := strconv.Atoi(strings.TrimSpace(value))
			return short(time.Duration(micros) * time.Microsecond)
		}
	}
	return "–"
}

// diskUsage is the size of the files below a directory, in bytes.
func diskUsage(dir string) (bytes int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				bytes += info.Size()
			}
		}
		return nil
	})
	return bytes
}

// restart stops the cluster and starts it again.
func (b *sizeBench) restart(ctx context.Context, jobs, n int) error {
	say("berth down")
	start := time.Now()
	if _, err := b.output(ctx, "berth", "down", "--state-dir", b.state); err != nil {
		return err
	}
	say("berth down took %s; berth up", short(time.Since(start)))
	start = time.Now()
	if _, err := b.output(ctx, "berth", "up", "--state-dir", b.state); err != nil {
		return err
	}
	ready := time.Since(start)
	err := until(ctx, 5*time.Minute, 50*time.Millisecond, func() (bool, error) {
		out, err := b.output(ctx, "squeue", "-h", "-o", "%i")
		return err == nil && len(strings.Fields(out)) >= jobs, nil
	})
	if err != nil {
		return err
	}
	listed := time.Since(start)
	if _, err := b.output(ctx, "sbatch", "--wait", "-t", "1", "-w", "n1", "-o", "/dev/null", "--wrap",
		"true"); err != nil {
		return err
	}
	b.rows = append(b.rows, fmt.Sprintf("| `berth up` with all of it: ready after %s, `squeue` lists all jobs after %s, "+
		"a new job has run after %s |\n", short(ready), short(listed), short(time.Since(start))))
	say("%s", strings.TrimSpace(b.rows[len(b.rows)-1]))
	if err := b.connect(); err != nil {
		return err
	}
	return b.measure(ctx, jobs, 0, n)
}
