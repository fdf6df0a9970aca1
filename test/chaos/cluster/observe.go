package cluster

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/test/chaos/history"
	"github.com/berth-hpc/berth/test/chaos/simnodes"
)

// Watcher collects the allocations of jobs.
type Watcher struct {
	mu   sync.Mutex
	seen map[[2]int64]history.Placement // by job and attempt
	done chan struct{}
}

// Watch follows the BatchJobs until ctx ends, past the proxy.
func (c *Cluster) Watch(ctx context.Context) *Watcher {
	w := &Watcher{seen: map[[2]int64]history.Placement{}, done: make(chan struct{})}
	go func() {
		defer close(w.done)
		for ctx.Err() == nil {
			if err := w.follow(ctx, c.Kubeconfig()); err != nil && ctx.Err() == nil {
				time.Sleep(200 * time.Millisecond)
			}
		}
	}()
	return w
}

// follow lists and watches until the watch ends.
func (w *Watcher) follow(ctx context.Context, kubeconfig string) error {
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	cl, err := client.NewWithWatch(cfg, client.Options{Scheme: control.NewScheme()})
	if err != nil {
		return err
	}
	list := &v1alpha1.BatchJobList{}
	if err := cl.List(ctx, list); err != nil {
		return err
	}
	for i := range list.Items {
		w.note(&list.Items[i])
	}
	events, err := cl.Watch(ctx, &v1alpha1.BatchJobList{}, &client.ListOptions{Raw: listFrom(list.ResourceVersion)})
	if err != nil {
		return err
	}
	defer events.Stop()
	for e := range events.ResultChan() {
		if b, ok := e.Object.(*v1alpha1.BatchJob); ok {
			w.note(b)
		}
	}
	return nil
}

// note stores the allocation of the job's attempt.
func (w *Watcher) note(b *v1alpha1.BatchJob) {
	if b.Status.Allocation == nil || b.Status.Attempt == 0 {
		return
	}
	p := history.Placement{Job: b.Spec.JobID, Attempt: int64(b.Status.Attempt), Restart: int64(b.Status.Restarts),
		At: time.Now()}
	for _, n := range b.Status.Allocation.Nodes {
		s := history.Share{Node: n.Name, Shared: n.Sharers > 0}
		s.CPUs, _ = history.ParseNumbers(n.CPUIDs)
		for _, g := range n.GRES {
			if g.Name == "gpu" {
				s.GPUs, _ = history.ParseNumbers(g.Indexes)
			}
		}
		p.Nodes = append(p.Nodes, s)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	k := [2]int64{p.Job, p.Attempt}
	if old, ok := w.seen[k]; ok {
		p.At = old.At
	}
	w.seen[k] = p
}

// Placements returns what was seen, after the context of Watch has ended.
func (w *Watcher) Placements() []history.Placement {
	<-w.done
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make([]history.Placement, 0, len(w.seen))
	for _, p := range w.seen {
		out = append(out, p)
	}
	return out
}

// Marks reads what the jobs wrote.
func (c *Cluster) Marks() ([]history.Mark, error) {
	files, err := filepath.Glob(filepath.Join(c.Output, "job-*"))
	if err != nil {
		return nil, err
	}
	var out []history.Mark
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		marks, err := history.ParseMarks(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f, err)
		}
		out = append(out, marks...)
	}
	return out, nil
}

// Records returns accounting, which may take a moment to have everything. sacct lists jobs
// by the time from which they were eligible; those that never were are listed by their ids.
func (c *Cluster) Records(ctx context.Context, ids []int64) ([]history.Record, error) {
	all, err := c.sacct(ctx, "-a", "-S", "now-1day")
	if err != nil {
		return nil, err
	}
	listed := map[string]bool{}
	key := func(r *history.Record) string { return fmt.Sprint(r.ID, r.Array, r.Tasks) }
	for i := range all {
		listed[key(&all[i])] = true
	}
	for chunk := range slices.Chunk(ids, 200) {
		texts := make([]string, len(chunk))
		for i, id := range chunk {
			texts[i] = strconv.FormatInt(id, 10)
		}
		more, err := c.sacct(ctx, "-j", strings.Join(texts, ","))
		if err != nil {
			return nil, err
		}
		all = append(all, slices.DeleteFunc(more, func(r history.Record) bool { return listed[key(&r)] })...)
	}
	return all, nil
}

func (c *Cluster) sacct(ctx context.Context, args ...string) ([]history.Record, error) {
	a := c.Run(ctx, c.Operator, "sacct", append([]string{"-n", "-P", "-X", "-o", history.RecordFields}, args...)...)
	if a.Exit != 0 {
		return nil, fmt.Errorf("sacct: exit %d: %s", a.Exit, a.Err)
	}
	return history.ParseRecords(a.Out)
}

// Queue returns the jobs that have not ended.
func (c *Cluster) Queue(ctx context.Context) ([]history.Row, error) {
	a := c.Run(ctx, c.Operator, "squeue", "-h", "-o", "%A|%j|%T|%r")
	if a.Exit != 0 {
		return nil, fmt.Errorf("squeue: exit %d: %s", a.Exit, a.Err)
	}
	return history.ParseQueue(a.Out)
}

// Shape returns the nodes that can run jobs.
func (c *Cluster) Shape() map[string]history.Node {
	out := map[string]history.Node{}
	for i := range c.Nodes {
		out[fmt.Sprintf("n%d", i+1)] = history.Node{CPUs: CPUsPerNode, GPUs: GPUsPerNode}
	}
	for _, name := range simnodes.Names(c.Simulated) {
		out[name] = history.Node{CPUs: CPUsPerNode}
	}
	return out
}

// Objects returns the objects that exist only while a job runs.
func (c *Cluster) Objects(ctx context.Context) ([]string, error) {
	var out []string
	for _, gvk := range []schema.GroupVersionKind{
		{Version: "v1", Kind: "PodList"}, {Group: "batch", Version: "v1", Kind: "JobList"},
		{Group: "jobset.x-k8s.io", Version: "v1alpha2", Kind: "JobSetList"},
		{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Kind: "PodGroupList"},
	} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk)
		if err := c.Client.List(ctx, list); err != nil {
			return nil, fmt.Errorf("%s: %w", gvk.Kind, err)
		}
		for _, o := range list.Items {
			out = append(out, strings.TrimSuffix(gvk.Kind, "List")+" "+o.GetNamespace()+"/"+o.GetName())
		}
	}
	return out, nil
}

// Goroutines returns how many the control plane's process has.
func (c *Cluster) Goroutines(ctx context.Context) (int, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	if err != nil {
		return 0, err
	}
	text, err := rawGet(ctx, cfg, "/debug/pprof/goroutine?debug=1")
	if err != nil {
		return 0, err
	}
	line, _, _ := strings.Cut(text, "\n")
	return strconv.Atoi(line[strings.LastIndexByte(line, ' ')+1:])
}

// Agents returns the processes that are agents of this cluster's pods, which have the port
// of its API server in their environment. Other clusters of the machine have others.
func (c *Cluster) Agents() []int {
	cfg, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	if err != nil {
		return nil
	}
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(cfg.Host, "https://"))
	var out []int
	for _, pid := range processes() {
		exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		if !strings.HasSuffix(exe, "/agent") {
			continue
		}
		environ, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if strings.Contains("\x00"+string(environ), "\x00KUBERNETES_SERVICE_PORT="+port+"\x00") {
			out = append(out, pid)
		}
	}
	return out
}

func processes() []int {
	entries, _ := os.ReadDir("/proc")
	var out []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil && pid != os.Getpid() && !isZombie(pid) {
			out = append(out, pid)
		}
	}
	return out
}

func isZombie(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	_, rest, _ := strings.Cut(string(data), ") ")
	return strings.HasPrefix(rest, "Z")
}

// leftovers lists the processes, mounts, control groups, shared memory, links and packet
// filters of the cluster in dir.
func leftovers(dir, state string) []string {
	var out []string
	for _, pid := range processes() {
		cwd, _ := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
		cmd, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if strings.HasPrefix(cwd, dir) || strings.Contains(string(cmd), dir) {
			out = append(out, fmt.Sprintf("process %d: %s", pid, strings.ReplaceAll(string(cmd), "\x00", " ")))
		}
	}
	if f, err := os.Open("/proc/self/mountinfo"); err == nil {
		defer f.Close()
		for s := bufio.NewScanner(f); s.Scan(); {
			if fields := strings.Fields(s.Text()); len(fields) > 4 && strings.HasPrefix(fields[4], dir) {
				out = append(out, "mount "+fields[4])
			}
		}
	}
	// The names that process nodes and their network have on the machine.
	owner, link := digest(filepath.Join(state, "nodes"), 4), "bt"+digest(state, 3)
	for _, pattern := range []string{"/sys/fs/cgroup/berth-" + owner + "*", "/sys/fs/cgroup/*/berth-" + owner + "*",
		"/dev/shm/berth-" + owner + "*", "/sys/class/net/" + link + "*"} {
		found, _ := filepath.Glob(pattern)
		out = append(out, found...)
	}
	if text, err := exec.Command("nft", "list", "tables").Output(); err == nil && strings.Contains(string(text), link) {
		out = append(out, "nft table "+link)
	}
	return out
}

// digest returns the first bytes of the text's hash, in hexadecimal digits.
func digest(text string, bytes int) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:bytes])
}

// KillAgent kills an agent, which may have ended.
func (c *Cluster) KillAgent(pid int) {
	if syscall.Kill(pid, syscall.SIGKILL) == nil {
		c.Count(Killed, "agent")
	}
}
