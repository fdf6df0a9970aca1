// Package cluster runs a local cluster for fault injection: its schedulers are processes of
// their own, which reach the API server through a proxy that can fail, and every process
// that is killed is started again, as a kubelet would do.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/test/chaos/simnodes"
)

// The shape of every cluster.
const (
	CPUsPerNode = 4
	GPUsPerNode = 2
	License     = "lic"
	Licenses    = 3
)

// Options of Start.
type Options struct {
	Bin      string // directory of the programs
	Previous string // directory of the programs of another version; "": none
	Dir      string // directory for everything of the cluster; it must exist
	Nodes    int
	Users    int           // made for this run if root; otherwise the caller is the only one
	Standby  bool          // a second scheduler waits to lead
	Reader   bool          // a process of its own answers queries
	Lease    time.Duration // 0: the scheduler's default
	Postgres bool          // accounting is in a PostgreSQL of its own
	// EtcdMembers is the number of members of an etcd outside of the control plane's
	// process; 0: it is inside.
	EtcdMembers int
	// Disk: the state directory is on a disk, which can fail. Root only.
	Disk bool
	// Login: users also submit on a login node. Root only.
	Login bool
	// Simulated is the number of nodes that exist only in the API server, for jobs in the
	// partition SimPartition.
	Simulated int
	Log       io.Writer
}

// SimPartition has all nodes. Jobs that are to run on simulated ones exclude the others.
const SimPartition = "sim"

// User is somebody who submits jobs.
type User struct {
	Name, Home string
	as         *syscall.Credential // nil: the caller
	kubeconfig string              // "": the one that commands find by themselves
}

// Cluster is a running cluster. Its methods are safe for concurrent use.
type Cluster struct {
	Options
	Users      []User
	Operator   User // may do everything
	Output     string
	Client     client.Client // of the administrator, past the proxy
	Proxy      Proxies       // of the schedulers
	UserProxy  Proxies       // one for each user: their commands use it; empty if not root
	Schedulers []*Process
	Readers    []*Process
	Database   *Postgres  // nil: SQLite
	Etcd       []*Process // empty: etcd is in the process of the control plane
	SmallDisk  bool       // the state directory can be filled

	state string
	image string // of the disk
	front *switchboard
	tally tally
	undo  []func()
}

// Start starts a cluster. Stop has to be called even if it fails.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	c := &Cluster{Options: o, state: filepath.Join(o.Dir, "state"), Output: filepath.Join(o.Dir, "out")}
	me, err := user.Current()
	if err != nil {
		return c, err
	}
	c.Operator = User{Name: me.Username, Home: me.HomeDir}
	// Users other than the caller write there.
	if err := errors.Join(os.Mkdir(c.Output, 0o755), os.Chmod(c.Output, 0o777), os.Chmod(o.Dir, 0o755)); err != nil {
		return c, err
	}
	if err := c.addUsers(); err != nil {
		return c, err
	}
	if err := c.mountState(); err != nil {
		return c, err
	}
	if o.Postgres {
		if c.Database, err = startPostgres(o.Dir, &c.tally); err != nil {
			return c, err
		}
		c.undo = append(c.undo, c.Database.stop)
	}
	if err := c.startEtcd(); err != nil {
		return c, err
	}
	if err := c.Up(ctx); err != nil {
		return c, err
	}
	c.undo = append(c.undo, c.down)
	if err := c.proxyUsers(); err != nil {
		return c, err
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	if err != nil {
		return c, err
	}
	cfg.QPS = -1
	if c.Client, err = client.New(cfg, client.Options{Scheme: control.NewScheme()}); err != nil {
		return c, err
	}
	if err := c.startSchedulers(); err != nil {
		return c, err
	}
	if err := c.startSimulated(ctx); err != nil {
		return c, err
	}
	return c, c.awaitAnswer(ctx)
}

// Kubeconfig returns the administrator's file.
func (c *Cluster) Kubeconfig() string { return filepath.Join(c.state, "kubeconfig") }

// addUsers makes users of the machine for this run.
func (c *Cluster) addUsers() error {
	if os.Geteuid() != 0 {
		c.Users = []User{c.Operator}
		return nil
	}
	for i := range c.Options.Users {
		name := fmt.Sprintf("chaos%d%c", os.Getpid()%100000, 'a'+i)
		out, err := exec.Command("useradd", "--create-home", "--shell", "/bin/bash", name).CombinedOutput()
		if err != nil {
			return fmt.Errorf("useradd: %w: %s", err, out)
		}
		c.undo = append(c.undo, func() { _ = exec.Command("userdel", "--remove", "--force", name).Run() })
		u, err := user.Lookup(name)
		if err != nil {
			return err
		}
		uid, _ := strconv.ParseUint(u.Uid, 10, 32)
		gid, _ := strconv.ParseUint(u.Gid, 10, 32)
		c.Users = append(c.Users, User{Name: name, Home: u.HomeDir,
			as: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}})
	}
	return nil
}

// proxyUsers starts a proxy with the credentials of each user who is not the caller.
func (c *Cluster) proxyUsers() error {
	for i := range c.Users {
		u := &c.Users[i]
		if u.as == nil {
			continue
		}
		file := filepath.Join(c.Dir, u.Name+".kubeconfig")
		p, err := newProxy(filepath.Join(u.Home, ".local/state/berth/user.kubeconfig"), file, "users", &c.tally)
		if err != nil {
			return err
		}
		c.undo = append(c.undo, p.close)
		if err := os.Chown(file, int(u.as.Uid), int(u.as.Gid)); err != nil {
			return err
		}
		u.kubeconfig = file
		c.UserProxy = append(c.UserProxy, p)
	}
	return nil
}

// conf is the slurm.conf of the cluster.
func (c *Cluster) conf() string {
	partitions := "PartitionName=main Nodes=ALL Default=YES"
	if c.Simulated > 0 {
		partitions = fmt.Sprintf("PartitionName=main Nodes=%s Default=YES\nPartitionName=%s Nodes=ALL", c.RealNodes(),
			SimPartition)
	}
	return fmt.Sprintf("ClusterName=chaos\nNodeName=%s CPUs=%d RealMemory=4000 Gres=gpu:%d\n"+
		"%s\nLicenses=%s:%d\nKillWait=2\nMinJobAge=3600\n",
		c.RealNodes(), CPUsPerNode, GPUsPerNode, partitions, License, Licenses)
}

// RealNodes are the names of the nodes whose pods are processes, as a list of hosts.
func (c *Cluster) RealNodes() string { return fmt.Sprintf("n[1-%d]", c.Nodes) }

// startSimulated adds the simulated nodes.
func (c *Cluster) startSimulated(ctx context.Context) error {
	if c.Simulated == 0 {
		return nil
	}
	dir := filepath.Join(c.Dir, "simulated")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	wait, err := simnodes.Start(ctx, simnodes.Options{Kubeconfig: c.Kubeconfig(), Nodes: c.Simulated, CPUs: CPUsPerNode,
		Output: c.Output, Dir: dir})
	if err != nil {
		stop()
		return err
	}
	c.undo = append(c.undo, func() { stop(); wait() })
	return nil
}

// Up starts the control plane and the nodes, also after they were killed. The cluster binds
// the port of its scheduler while it starts, so the switchboard leaves it meanwhile.
func (c *Cluster) Up(ctx context.Context) error {
	if c.front != nil {
		c.front.close()
		defer func() {
			if err := c.front.open(); err != nil {
				c.say("the address of the scheduler: %v", err)
			}
		}()
	}
	conf := filepath.Join(c.Dir, "slurm.conf")
	if err := os.WriteFile(conf, []byte(c.conf()), 0o600); err != nil {
		return err
	}
	args := []string{"up", "--state-dir", c.state, "--scheduler=external", "--slurm-conf", conf}
	if os.Geteuid() == 0 {
		for _, u := range c.Users {
			args = append(args, "--user", u.Name)
		}
	}
	if c.Login = c.Login && os.Geteuid() == 0 && hasSSH(); c.Login {
		args = append(args, "--login")
	}
	args = append(args, c.etcdFlags()...)
	if c.Database != nil {
		args = append(args, "--accounting-storage", c.Database.Address)
	}
	if out, err := exec.CommandContext(ctx, filepath.Join(c.Bin, "berth"), args...).CombinedOutput(); err != nil {
		return fmt.Errorf("berth up: %w\n%s", err, out)
	}
	return nil
}

func (c *Cluster) down() {
	out, err := exec.Command(filepath.Join(c.Bin, "berth"), "down", "--state-dir", c.state).CombinedOutput()
	if err != nil {
		c.say("berth down: %v\n%s", err, out)
	}
}

// say writes a line to the log.
func (c *Cluster) say(format string, args ...any) {
	fmt.Fprintf(c.Log, time.Now().Format("15:04:05.000 ")+format+"\n", args...)
}

// startSchedulers starts the leader, the standby and the reader behind the proxy.
func (c *Cluster) startSchedulers() error {
	text, err := os.ReadFile(filepath.Join(c.state, "scheduler.args"))
	if err != nil {
		return err
	}
	flags := map[string]string{}
	for _, f := range strings.Fields(string(text)) {
		name, value, _ := strings.Cut(f, "=")
		flags[name] = value
	}
	p, err := newProxy(flags["--kubeconfig"], filepath.Join(c.Dir, "proxied.kubeconfig"), "scheduler", &c.tally)
	if err != nil {
		return err
	}
	c.undo = append(c.undo, p.close)
	c.Proxy = Proxies{p}
	flags["--kubeconfig"] = filepath.Join(c.Dir, "proxied.kubeconfig")
	delete(flags, "--identity")
	c.front = &switchboard{address: flags["--bind-address"], find: c.leaderAddress}
	if err := c.front.open(); err != nil {
		return err
	}
	c.undo = append(c.undo, c.front.close)
	if c.Lease > 0 {
		flags["--lease-duration"] = c.Lease.String()
	}
	role := "scheduler,api"
	if c.Reader {
		role = "scheduler"
	}
	names := []string{"scheduler-a", "scheduler-b"}
	if !c.Standby {
		names = names[:1]
	}
	for _, name := range names {
		p, err := c.newProcess(name, flags, role)
		if err != nil {
			return err
		}
		c.Schedulers = append(c.Schedulers, p)
	}
	if c.Reader {
		p, err := c.newProcess("reader", flags, "api")
		if err != nil {
			return err
		}
		c.Readers = append(c.Readers, p)
	}
	return nil
}

// newProcess starts a scheduler with an address of its own.
func (c *Cluster) newProcess(name string, flags map[string]string, role string) (*Process, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := l.Addr().String()
	_ = l.Close()
	own := map[string]string{
		"--role": role, "--bind-address": address, "--public-url": "https://" + address,
	}
	var args []string
	for k, v := range flags {
		if _, ok := own[k]; !ok {
			args = append(args, k+"="+v)
		}
	}
	args = strings.Fields(strings.Join(args, " ")) // flags without a value end in "="
	for i, a := range args {
		args[i] = strings.TrimSuffix(a, "=")
	}
	for k, v := range own {
		args = append(args, k+"="+v)
	}
	p := &Process{Name: name, Address: address, path: filepath.Join(c.Bin, "scheduler"), args: args,
		log: filepath.Join(c.Dir, name+".log"), kind: "scheduler", tally: &c.tally}
	if role == "api" {
		p.kind = name
	}
	c.undo = append(c.undo, p.Stop)
	return p, p.run()
}

// awaitAnswer waits until sinfo answers.
func (c *Cluster) awaitAnswer(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		a := c.Run(ctx, c.Operator, "squeue", "-h")
		if a.Exit == 0 {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("the cluster does not answer: %s", a.Err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// Answer is what a command answered.
type Answer struct {
	Call, Return time.Time
	Exit         int // -1: it was killed
	Out, Err     string
}

// Run runs a command of Berth's as the user.
func (c *Cluster) Run(ctx context.Context, u User, name string, args ...string) Answer {
	cmd := exec.CommandContext(ctx, filepath.Join(c.Bin, name), args...)
	cmd.Dir = c.Output
	cmd.Env = []string{
		"PATH=" + c.Bin + ":/usr/local/bin:/usr/bin:/bin", "HOME=" + u.Home, "USER=" + u.Name, "LOGNAME=" + u.Name,
		"LANG=C.UTF-8", "SLURM_TIME_FORMAT=%s",
	}
	if u.as == nil {
		cmd.Env = append(cmd.Env, "KUBECONFIG="+c.Kubeconfig())
	} else {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: u.as}
		if u.kubeconfig != "" {
			cmd.Env = append(cmd.Env, "KUBECONFIG="+u.kubeconfig)
		}
	}
	return run(cmd)
}

// run runs a command and returns its answer.
func run(cmd *exec.Cmd) Answer {
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &errs, time.Second
	a := Answer{Call: time.Now()}
	err := cmd.Run()
	a.Return, a.Out, a.Err = time.Now(), strings.TrimSpace(out.String()), strings.TrimSpace(errs.String())
	if err != nil && cmd.ProcessState == nil {
		a.Exit, a.Err = -1, err.Error()
		return a
	}
	a.Exit = cmd.ProcessState.ExitCode()
	return a
}

// Stop stops everything and returns what is left on the machine.
func (c *Cluster) Stop() []string {
	for i := len(c.undo) - 1; i >= 0; i-- {
		c.undo[i]()
	}
	var out []string
	for _, what := range leftovers(c.Dir, c.state) {
		out = append(out, "after berth down: "+what)
	}
	return out
}
