package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-hpc/berth/internal/agent/apiclient"
	"github.com/berth-hpc/berth/internal/agent/bind"
	"github.com/berth-hpc/berth/internal/agent/coord"
	"github.com/berth-hpc/berth/internal/agent/gpu"
	"github.com/berth-hpc/berth/internal/agent/launch"
	"github.com/berth-hpc/berth/internal/agent/peer"
	"github.com/berth-hpc/berth/internal/agent/spawn"
	"github.com/berth-hpc/berth/internal/step/affinity"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/env"
	"github.com/berth-hpc/berth/translate/job"
)

// Agent is the agent of one node of a job.
type Agent struct {
	config *Config
	root   *slog.Logger // of the process
	log    *slog.Logger // of the job
	api    *apiclient.Client
	spawn  *spawn.Spawner

	dir      string   // private directory: socket, script
	dirLock  *os.File // lock on dir
	socket   string   // path
	unix     *net.UnixListener
	tcp      net.Listener
	peers    *peerListener
	identity *peer.Identity

	welcome *wire.Welcome
	job     job.Job
	input   env.Input
	node    *launch.Node
	coord   *coord.Coordinator // nil unless this is the first node
	steps   *stepReports       // set with coord
	idle    idleConns          // connections to other agents
	site    *site              // the site's scripts
	clients resumableClients   // clients from outside
}

// Run runs the agent and returns its exit code. When ctx is cancelled, as by the
// kubelet's SIGTERM, the job's processes are terminated.
func Run(ctx context.Context, config *Config, log *slog.Logger) int {
	// Otherwise another process of the same uid could read the job's key from the
	// memory of the agent.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		log.Warn("cannot protect the memory of the agent from its job", "error", err)
	}
	a := &Agent{
		config: config, root: log, log: log.With("job", config.JobID),
		api: apiclient.New(config.APIs, config.CA, config.Token),
	}
	err := checkMounts(path.Join(wire.RunDir, wire.MountsFile))
	if err == nil {
		err = a.start(ctx)
	}
	if err != nil {
		a.log.Error("cannot start the job", "error", err)
		a.writeTerminationLog(&wire.Report{
			JobID: config.JobID, Attempt: config.Attempt, Kind: wire.ReportFailed, Message: err.Error(),
		})
		a.close()
		return 1
	}
	defer a.close()
	if a.coord != nil {
		return a.runJobs(ctx)
	}
	a.prolog(ctx)
	<-ctx.Done()
	// The kubelet kills the pod KillWait seconds after SIGTERM.
	a.terminateAll(time.Duration(a.welcome.KillWait) * time.Second * 3 / 4)
	a.epilog()
	return 0
}

// start reports to the API role, waits for its answer, and returns when steps can run.
func (a *Agent) start(ctx context.Context) error {
	var err error
	if a.spawn, err = spawn.New(); err != nil {
		return err
	}
	if a.dir, a.dirLock, err = privateDir(a.config.TempDir); err != nil {
		return err
	}
	if a.unix, a.socket, err = peer.Listen(a.dir); err != nil {
		return err
	}
	if a.tcp, err = net.Listen("tcp", net.JoinHostPort(a.config.PodIP, "0")); err != nil {
		return fmt.Errorf("listen for agents: %w", err)
	}
	hello := &wire.Hello{
		JobID: a.config.JobID, Attempt: a.config.Attempt, Index: a.config.Index,
		Address: a.tcp.Addr().String(), CPUs: affinity.FormatCPUList(cpuNumbers(a.bindable())),
	}
	if a.welcome, err = a.api.Hello(ctx, hello); err != nil {
		return fmt.Errorf("hello: %w", err)
	}
	if err := a.configure(); err != nil {
		return err
	}
	a.peers = &peerListener{}
	a.peers.agent.Store(a)
	go a.peers.serve(ctx, a.tcp)
	go a.serveUnix(ctx)
	return nil
}

// configure prepares the agent for the job that the welcome describes.
func (a *Agent) configure() error {
	w := a.welcome
	if w.JobID != a.config.JobID || w.Index != a.config.Index || int(w.Index) >= len(w.Hosts) || w.Index < 0 {
		return fmt.Errorf("welcome is for node %d of job %d", w.Index, w.JobID)
	}
	if t, ok := wire.ParseTraceparent(w.Traceparent); ok {
		a.log = a.log.With("trace", t.TraceID())
	}
	if err := json.Unmarshal(w.Job, &a.job); err != nil {
		return fmt.Errorf("welcome: job: %w", err)
	}
	var err error
	if a.identity, err = peer.NewIdentity(w.Certificate, w.Key, time.Duration(w.NodeTimeout)*time.Second); err != nil {
		return err
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err == nil {
		err = fillHosts(a.config.HostsFile, w.Hosts, submitHost(&a.job.Batch), mounts)
	}
	if err != nil {
		a.log.Warn("cannot write the job's hosts file; host names of its nodes will not resolve", "error", err)
	}
	mask := 0o022
	if a.job.Batch.Umask > 0 {
		mask = int(a.job.Batch.Umask) - 1
	}
	spawn.SetUmask(mask) // inherited by all processes of the job
	if a.site, err = a.newSite(); err != nil {
		return err
	}
	a.clients.grace = a.config.ResumeGrace
	a.input = env.Input{Welcome: w, Job: &a.job, API: a.config.APIs[0]}
	a.node = &launch.Node{
		Index: w.Index, Name: w.Hosts[w.Index].Name, User: w.User, Spawn: a.spawn, Helper: a.config.Helper,
		Dial: a.dialLaunch, Keep: a.keepConn, Env: a.taskEnv, CPUs: a.bindable(), JobName: a.job.Name,
		TaskProlog: a.site.TaskProlog, TaskEpilog: a.site.TaskEpilog,
		Topology: sync.OnceValue(func() *bind.Topology { return bind.Read(bind.Sys) }),
		GPUs:     gpuIndexes(&w.Hosts[w.Index]), NearGPUs: nearGPUs(), GPULoad: a.gpuLoad, OOMKills: oomKills,
		PMIx: filepath.Join(a.config.BinDir, wire.PMIxServer), TempDir: a.dir,
	}
	if w.Array != nil {
		a.node.ArrayJobID, a.node.ArrayTask = w.Array.JobID, w.Array.Index
	}
	if w.Index == 0 {
		a.coord = coord.New(a.node, a.coordJob(), timestamp)
		a.reportSteps()
	}
	return nil
}

// coordJob returns the description of the job for its coordinator.
func (a *Agent) coordJob() *coord.Job {
	j := &coord.Job{
		ID: a.welcome.JobID, KillWait: a.welcome.KillWait, Unpropagated: a.welcome.Unpropagated,
		Address: a.config.PodIP, Container: a.job.Batch.Container,
		OOMKillStep: a.job.Options["oom-kill-step"] == "1",
		NoKill:      a.job.Batch.NoKill, MemPerCPU: a.job.Shape.MemPerNode == nil,
	}
	if len(a.welcome.Het) > 0 {
		j.HetID = a.welcome.Het[0].JobID
	}
	for _, h := range a.welcome.Hosts {
		var pools []coord.Pool
		for _, g := range h.GRES {
			if g.Name != "gpu" {
				pools = append(pools, coord.Pool{Name: g.Name, Type: g.Type, Count: g.Count})
			}
		}
		ids, err := affinity.ParseCPUList(h.CPUIDs)
		if err != nil {
			a.log.Warn("tasks will not be bound to CPUs", "node", h.Name, "error", err)
		}
		j.Nodes = append(j.Nodes, coord.Node{
			Name: h.Name, CPUs: max(h.CPUs, 1), IDs: ids, Memory: h.Memory, GPUs: gpuIndexes(&h), GRES: pools,
			HasGPUs: slices.ContainsFunc(h.GRES, func(g wire.HostGRES) bool { return g.Name == "gpu" }),
		})
	}
	return j
}

// gpuIndexes returns the indexes of the job's GPUs on a host. If a device plugin or driver chose
// the GPUs, the container has no others, so they are numbered from 0. Partitions of GPUs have no
// indexes; a job that has some on the host gets nil.
func gpuIndexes(h *wire.Host) []int {
	var ids []int
	for _, g := range h.GRES {
		if g.Name == "gpu" {
			if g.Indexes == "" {
				if isPartition(g.Type) {
					return nil
				}
				for range min(g.Count, maxGPUs) {
					ids = append(ids, len(ids))
				}
				continue
			}
			list, err := affinity.ParseCPUList(g.Indexes)
			if err != nil {
				return nil
			}
			ids = append(ids, list...)
		}
	}
	return ids
}

// nearGPUs returns a function that returns the CPUs near each of the GPUs with these indexes, as
// far as they are known.
func nearGPUs() func(ids []int) [][]int {
	all := sync.OnceValue(func() map[int][]int { return gpu.Near(context.Background(), bind.Sys, "/dev") })
	return func(ids []int) [][]int {
		out := make([][]int, len(ids))
		for i, id := range ids {
			out[i] = all()[id]
		}
		return out
	}
}

// maxGPUs is more than a node has.
const maxGPUs = 1024

// partition is the name of a part of a GPU, such as 1g.5gb.
var partition = regexp.MustCompile(`^[0-9]+g\.[0-9]+gb`)

func isPartition(kind string) bool { return partition.MatchString(kind) }

// timestamp returns the current time as Slurm writes it in notices.
func timestamp() string { return time.Now().Format("2006-01-02T15:04:05") }

// bindable returns the CPUs to which tasks can be bound, or nil if the node does
// not support binding.
func (a *Agent) bindable() *unix.CPUSet {
	if v, _ := env.Get(a.config.Environ, wire.EnvCPUBind); v == "none" {
		return nil
	}
	return ownMask()
}

// ownMask returns the CPUs of the agent, or nil if they are unknown.
func ownMask() *unix.CPUSet {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return nil
	}
	return &set
}

// cpuNumbers returns the CPUs of a set in ascending order.
func cpuNumbers(set *unix.CPUSet) []int {
	var ids []int
	for i := 0; set != nil && len(ids) < set.Count(); i++ {
		if set.IsSet(i) {
			ids = append(ids, i)
		}
	}
	return ids
}

// close releases all resources of the agent.
func (a *Agent) close() {
	if a.tcp != nil {
		a.tcp.Close()
	}
	a.closeJob()
}

// closeJob releases the resources of the current job. It may be called more than once.
func (a *Agent) closeJob() {
	a.clients.drain()
	if a.unix != nil {
		a.unix.Close()
	}
	if a.dir != "" {
		os.RemoveAll(filepath.Clean(a.dir))
		a.dirLock.Close()
	}
}

// terminateAll terminates every process on this node: SIGTERM, and SIGKILL after
// the grace period.
func (a *Agent) terminateAll(grace time.Duration) {
	if spawn.Kill(syscall.SIGCONT, spawn.Everything) == 0 {
		return
	}
	spawn.Kill(syscall.SIGTERM, spawn.Everything)
	deadline := time.Now().Add(grace)
	for time.Now().Before(deadline) {
		if spawn.Kill(0, spawn.Everything) == 0 {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	spawn.KillAll(5*time.Second, spawn.Everything)
}

// writeTerminationLog writes the last report to the container's termination log,
// from which the kubelet reads it.
func (a *Agent) writeTerminationLog(r *wire.Report) {
	if a.config.TerminationLog == "" {
		return
	}
	short := *r
	short.Steps = nil
	short.Message = short.Message[:min(len(short.Message), 2000)] // the kubelet stores 4 KiB in all
	b, err := json.Marshal(&short)
	if err != nil {
		return
	}
	f, err := os.OpenFile(a.config.TerminationLog, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return // not every pod has one
	}
	defer f.Close()
	f.Write(b) //nolint:errcheck // it cannot be reported anywhere
}
