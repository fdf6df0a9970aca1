package command

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/internal/localcluster"
	"github.com/berth-hpc/berth/internal/localcluster/options"
)

// config turns the options into a description of the cluster.
func (p *program) config(progress func(string)) (localcluster.Config, error) {
	c := localcluster.Config{
		StateDir: p.StateDir, BinDir: p.BinDir, APIPort: p.APIPort,
		Isolated: p.Isolated, Login: p.Login, LoginPort: p.LoginPort, Accounting: p.AccountingStorage,
		EtcdServers: p.EtcdServers, Directory: p.Directory, TraceEndpoint: p.TraceEndpoint,
		AuthenticationConfig: p.AuthenticationConfig,
		Parts:                p.parts, Progress: progress, Now: p.Now,
	}
	var err error
	if err = p.complete(); err != nil {
		return c, err
	}
	if c.Admin, err = localcluster.Current(); err != nil {
		return c, err
	}
	old := localcluster.Shape{}
	if !p.Fresh {
		if old, err = localcluster.ReadShape(p.StateDir); err != nil {
			return c, fmt.Errorf("state directory: %w; --fresh starts over", err)
		}
	}
	if c.Users, err = p.accounts(old.Users); err != nil {
		return c, err
	}
	c.Plain = p.Scheduler == options.SchedulerNone
	if c.Plain || p.Scheduler == options.SchedulerExternal {
		c.Parts.Scheduler = nil
	}
	switch {
	case p.SlurmConf != "":
		err = p.imitate(&c)
	case p.Shaped || len(old.Nodes) == 0:
		c.Nodes, err = p.nodes()
	default:
		c.Nodes = old.Nodes
	}
	return c, err
}

// accounts looks up the users that are named now and those of earlier starts.
func (p *program) accounts(old []string) ([]localcluster.Account, error) {
	var all []localcluster.Account
	for _, name := range p.Users {
		u, err := localcluster.LookUp(name)
		if err != nil {
			return nil, fmt.Errorf("--user %s: %w", name, err)
		}
		all = append(all, u)
	}
	if p.UID != 0 {
		return all, nil
	}
	for _, name := range old {
		if slices.Contains(p.Users, name) {
			continue
		}
		// Users that the machine does not have any more do not prevent the start.
		if u, err := localcluster.LookUp(name); err == nil {
			all = append(all, u)
		}
	}
	return all, nil
}

// nodes returns the --nodes equal nodes n1, n2, ...
func (p *program) nodes() ([]localcluster.Node, error) {
	cpus := p.CPUs
	if cpus == 0 {
		cpus = runtime.NumCPU()
	}
	memory, err := options.ParseMemory(p.Memory)
	if err != nil {
		return nil, err
	}
	if memory == 0 {
		if memory, err = memoryShare(p.Nodes); err != nil {
			return nil, err
		}
	}
	all := make([]localcluster.Node, p.Nodes)
	for i := range all {
		n := localcluster.Node{
			Name: fmt.Sprintf("n%d", i+1), CPUs: int64(cpus), Memory: memory,
			Sockets: 1, Cores: cpus, Threads: 1,
		}
		if p.GPUs > 0 {
			n.GRES = []localcluster.GRES{{Name: "gpu", Count: int64(p.GPUs)}}
		}
		all[i] = n
	}
	return all, nil
}

// memoryShare returns the share of one of n nodes in this machine's memory, in MiB.
func memoryShare(n int) (int64, error) {
	total, err := machineMemory()
	return max(total/int64(max(n, 1)), 1), err
}

// machineMemory returns MemTotal of /proc/meminfo, in MiB.
func machineMemory() (int64, error) {
	data, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	var kib int64
	for line := range strings.Lines(string(data)) {
		if n, _ := fmt.Sscanf(line, "MemTotal: %d kB", &kib); n == 1 {
			return kib / 1024, nil
		}
	}
	return 0, fmt.Errorf("/proc/meminfo: no MemTotal")
}
