package processnode

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/internal/processnode/cgroups"
	"github.com/berth-hpc/berth/internal/processnode/identity"
	"github.com/berth-hpc/berth/internal/processnode/logfile"
	"github.com/berth-hpc/berth/internal/processnode/podenv"
	"github.com/berth-hpc/berth/internal/processnode/podnet"
	"github.com/berth-hpc/berth/internal/processnode/shim"
	"github.com/berth-hpc/berth/internal/processnode/stream"
	"github.com/berth-hpc/berth/internal/processnode/task"
	"github.com/berth-hpc/berth/internal/wire"
)

// defaultPath is the default of PATH in a container.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// start starts the container's command. After a *configError it can be tried again; any
// other error ends this run of the container.
func (c *container) start() (*running, error) {
	p := c.p
	id, err := identity.Of(p.spec, c.spec, p.m.iso.Root)
	if err != nil {
		return nil, &configError{err}
	}
	env, values, err := p.facts.Environment(p.ctx, c.spec, c.baseEnv(id))
	if err != nil {
		return nil, &configError{err}
	}
	mounts, err := p.mounts(c.spec, id, values)
	if err != nil {
		return nil, &configError{err}
	}
	message, err := c.prepareFiles()
	if err != nil {
		return nil, err
	}
	target := c.spec.TerminationMessagePath
	if target == "" {
		target = corev1.TerminationMessagePathDefault
	}
	mounts = append(mounts, shim.Mount{Source: message, Target: target})

	spec := c.shimSpec(id, env, values)
	spec.Root, spec.Mounts, spec.Hostname = p.m.root, mounts, p.hostname
	if spec.Shm, err = p.sharedMemory(); err != nil {
		return nil, err
	}
	r := &running{env: env, id: id, stop: make(chan string, 1)}
	if r.streams, err = stream.Open(c.spec, c.log); err != nil {
		return nil, err
	}
	if r.group, err = p.m.cgroups.Create(c.groupName(), limits(c.spec)); err != nil {
		r.streams.Abandon()
		return nil, err
	}
	r.task, err = task.Start(task.Options{
		Spec: spec, Isolation: p.m.iso, Net: p.net.Namespace(), Cgroup: r.group, TTY: c.spec.TTY,
		Stdin: r.streams.ChildIn, Stdout: r.streams.ChildOut, Stderr: r.streams.ChildErr,
	})
	if err != nil {
		r.streams.Abandon()
		r.group.Kill()
		r.group.Remove()
		return nil, err
	}
	r.streams.Begin()
	return r, nil
}

// mounts returns the mounts of a container: its volumes and the files with the names of
// hosts and name servers. values expand subPathExpr.
func (p *pod) mounts(c *corev1.Container, id identity.Identity, values map[string]string) ([]shim.Mount, error) {
	mounts, err := p.volumes.Mounts(c, id, values)
	if err != nil {
		return nil, err
	}
	isHosts := func(m shim.Mount) bool { return filepath.Clean(m.Target) == "/etc/hosts" }
	if !p.spec.Spec.HostNetwork && !slices.ContainsFunc(mounts, isHosts) {
		file := filepath.Join(p.dir, "hosts")
		if err := os.WriteFile(file, []byte(p.hosts()), 0o644); err != nil {
			return nil, err
		}
		mounts = append(mounts, shim.Mount{Source: file, Target: "/etc/hosts"})
	}
	if source := podnet.ResolvConf(os.ReadFile); p.net.Namespace() != nil && source != "" {
		mounts = append(mounts, shim.Mount{Source: source, Target: "/etc/resolv.conf", ReadOnly: true})
	}
	return mounts, nil
}

// shimSpec returns the parts of the shim's Spec that all processes of the container share.
func (c *container) shimSpec(id identity.Identity, env []string, values map[string]string) shim.Spec {
	argv := make([]string, 0, len(c.spec.Command)+len(c.spec.Args))
	for _, a := range c.spec.Command {
		argv = append(argv, podenv.Expand(a, values))
	}
	for _, a := range c.spec.Args {
		argv = append(argv, podenv.Expand(a, values))
	}
	spec := shim.Spec{
		Argv: argv, Env: env, Dir: c.spec.WorkingDir,
		SetIDs: c.p.m.iso.Root, UID: id.UID, GID: id.GID, Groups: id.Groups,
		Bounding: identity.Bounding(c.spec.SecurityContext),
	}
	if sc := c.spec.SecurityContext; sc != nil {
		spec.NoNewPrivs = sc.AllowPrivilegeEscalation != nil && !*sc.AllowPrivilegeEscalation
		spec.ReadOnlyRoot = sc.ReadOnlyRootFilesystem != nil && *sc.ReadOnlyRootFilesystem
	}
	return spec
}

// baseEnv returns the variables of every container, which its own variables override.
func (c *container) baseEnv(id identity.Identity) []corev1.EnvVar {
	env := []corev1.EnvVar{
		{Name: "PATH", Value: defaultPath},
		{Name: "HOSTNAME", Value: c.p.hostname},
		{Name: "HOME", Value: id.Home},
		// The CPU numbers of a node are fictitious.
		{Name: wire.EnvCPUBind, Value: "none"},
	}
	if c.spec.TTY {
		env = append(env, corev1.EnvVar{Name: "TERM", Value: "xterm"})
	}
	if host := c.p.m.cfg.APIHost; host != "" {
		port := strconv.Itoa(c.p.m.cfg.APIPort)
		env = append(env,
			corev1.EnvVar{Name: "KUBERNETES_SERVICE_HOST", Value: host},
			corev1.EnvVar{Name: "KUBERNETES_SERVICE_PORT", Value: port},
			corev1.EnvVar{Name: "KUBERNETES_SERVICE_PORT_HTTPS", Value: port})
	}
	return env
}

// prepareFiles creates the log and the termination message file of a new run, and returns
// the path of the latter.
func (c *container) prepareFiles() (message string, err error) {
	if err := os.MkdirAll(c.dir, 0o711); err != nil {
		return "", err
	}
	message = filepath.Join(c.dir, "termination-log")
	if err := os.WriteFile(message, nil, 0o666); err != nil {
		return "", err
	}
	// The container may run as any user. Chmod, unlike WriteFile, ignores the umask.
	if err := os.Chmod(message, 0o666); err != nil {
		return "", err
	}
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	path := filepath.Join(c.dir, strconv.Itoa(int(c.restarts))+".log")
	if c.log != nil && len(c.logs) > 0 && c.logs[len(c.logs)-1] == path {
		return message, nil // another attempt of the same run
	}
	if c.log, err = logfile.Create(path); err != nil {
		return "", err
	}
	c.logs = append(c.logs, path)
	if len(c.logs) > 2 {
		_ = os.Remove(c.logs[0])
		_ = os.Remove(c.logs[0] + logfile.Old)
		c.logs = c.logs[1:]
	}
	return message, nil
}

// sharedMemory returns the directory of the pod's /dev/shm, which its containers share, or
// "" if there is none.
func (p *pod) sharedMemory() (string, error) {
	if p.m.shm == "" {
		return "", nil
	}
	own, err := p.volumes.MemoryDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(own, "shm")
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o777|os.ModeSticky)
}

func (c *container) groupName() string {
	return fmt.Sprintf("%s-%s", c.p.spec.UID, c.spec.Name)
}

func limits(c *corev1.Container) cgroups.Limits {
	limit, request := c.Resources.Limits, c.Resources.Requests
	share := request.Cpu().MilliValue()
	if share == 0 {
		share = limit.Cpu().MilliValue()
	}
	return cgroups.Limits{Memory: limit.Memory().Value(), CPUMillis: limit.Cpu().MilliValue(), CPUShare: share}
}
