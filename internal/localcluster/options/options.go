// Package options is the command line of the local cluster, which berth and berth-local
// share. It does not link Kubernetes.
package options

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// Where the scheduler runs.
const (
	SchedulerInternal = "internal"
	SchedulerExternal = "external"
	// SchedulerNone leaves out Berth and JobSet: the result is a Kubernetes with its
	// own controllers and scheduler, for testing the installation of Berth.
	SchedulerNone = "none"
)

// Options of `berth up`. The zero value of a field means its default.
type Options struct {
	StateDir   string
	Nodes      int
	CPUs       int
	Memory     string
	GPUs       int
	APIPort    int
	Foreground bool
	Fresh      bool
	SlurmConf  string
	Directory  string
	// AuthenticationConfig is the file with the OpenID providers of the API server; "": none.
	AuthenticationConfig string
	// TraceEndpoint is the URL of a collector of traces; "": none.
	TraceEndpoint string
	Users         []string
	Scheduler     string
	BinDir        string
	Login         bool
	LoginPort     int
	Isolated      bool

	AccountingStorage string   // "": a file in the state directory
	EtcdServers       []string // URLs of Unix sockets; empty: etcd runs in the cluster's process

	// Shaped is set if the command line has the number or the size of nodes. Otherwise
	// those of the last start are used.
	Shaped bool
}

// AddState adds the flag of every sub-command.
func (o *Options) AddState(fs *pflag.FlagSet) {
	fs.StringVar(&o.StateDir, "state-dir", o.StateDir,
		"`directory` of the cluster's state (default: /var/lib/berth as root, else ~/.local/state/berth)")
}

// AddRun adds the flags for starting a cluster.
func (o *Options) AddRun(fs *pflag.FlagSet) {
	o.AddState(fs)
	fs.IntVar(&o.Nodes, "nodes", 3, "`number` of process nodes, named n1, n2, ... (default: as last time, else 3)")
	fs.IntVar(&o.CPUs, "cpus", 0, "CPUs of each node (default: as many as this machine has)")
	fs.StringVar(&o.Memory, "memory", "",
		"memory of each node, such as 4000M or 8G (default: this machine's, shared evenly)")
	fs.IntVar(&o.GPUs, "gpus", 0, "simulated GPUs of each node")
	fs.StringVar(&o.SlurmConf, "slurm-conf", "", "read nodes, partitions and parameters from a slurm.conf `file`")
	fs.StringArrayVar(&o.Users, "user", nil,
		"make this `user` of the machine a user of the cluster (repeatable; as root)")
	fs.StringVar(&o.Directory, "directory", "",
		"`file` that names sources of users, such as LDAP, who become users of the cluster (as root)")
	fs.StringVar(&o.AuthenticationConfig, "authentication-config", "",
		"`file` with an AuthenticationConfiguration of Kubernetes: the OpenID providers whose tokens the cluster accepts")
	fs.StringVar(&o.TraceEndpoint, "trace-endpoint", "",
		"`URL` of an OpenTelemetry collector (OTLP over HTTP) that gets the traces of jobs, such as http://127.0.0.1:4318")
	fs.BoolVar(&o.Fresh, "fresh", false, "wipe the state of earlier runs first")
	fs.BoolVar(&o.Foreground, "foreground", false, "stay in the foreground; Ctrl-C ends the cluster")
	fs.IntVar(&o.APIPort, "api-port", 0,
		"`port` of the API server on 127.0.0.1 (default: the one used last time, or a free one)")
	fs.BoolVar(&o.Login, "login", false, "run a login node (SSH) on 127.0.0.1 as well, and print how to log in")
	fs.IntVar(&o.LoginPort, "login-port", 0,
		"`port` of the login node (default: the one used last time, or a free one)")
	fs.BoolVar(&o.Isolated, "isolated", false,
		"jobs reach one another and the cluster only, not what this machine reaches (as root)")
	fs.StringVar(&o.AccountingStorage, "accounting-storage", "",
		"`database` of accounting: the path of a file, or a postgres:// URL (default: a file in the state directory)")
	fs.StringArrayVar(&o.EtcdServers, "etcd-server", nil,
		"use the etcd at this `URL` of a Unix socket, as unix:///run/etcd.sock (repeatable; default: one in the cluster's process)")
	fs.StringVar(&o.Scheduler, "scheduler", SchedulerInternal,
		"internal, or external: somebody else runs the scheduler, with the flags in the state directory's scheduler.args; none: a Kubernetes without Berth")
	fs.StringVar(&o.BinDir, "bin-dir", "", "`directory` of the commands, as pods see it (default: where this program is)")
}

// schemeSQLite may precede the path of a database file in --accounting-storage.
const schemeSQLite = "sqlite:"

// shapeFlags are the flags for the number and the size of nodes.
var shapeFlags = []string{"nodes", "cpus", "memory", "gpus"}

// Args returns the flags that result in o: all of them, but those of the nodes' shape
// only if the command line had one.
func (o *Options) Args() []string {
	var args []string
	var flags pflag.FlagSet
	var bound Options
	bound.AddRun(&flags)
	bound = *o // the flags' values are its fields
	flags.VisitAll(func(f *pflag.Flag) {
		if !o.Shaped && slices.Contains(shapeFlags, f.Name) {
			return
		}
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, v := range values {
			args = append(args, "--"+f.Name+"="+v)
		}
	})
	return args
}

// RecordShaped sets Shaped from the flags that were given.
func (o *Options) RecordShaped(fs *pflag.FlagSet) {
	for _, name := range shapeFlags {
		o.Shaped = o.Shaped || fs.Changed(name)
	}
}

// Complete sets defaults and checks what can be checked without reading files of the
// machine. euid is the effective user id, env the environment, dir the current directory,
// exe this program's path.
func (o *Options) Complete(euid int, env func(string) string, dir, exe string) error {
	if o.StateDir == "" {
		d, err := DefaultStateDir(euid, env)
		if err != nil {
			return err
		}
		o.StateDir = d
	}
	abs := func(p *string) {
		if *p != "" && !filepath.IsAbs(*p) {
			*p = filepath.Join(dir, *p)
		}
		if *p != "" {
			*p = filepath.Clean(*p)
		}
	}
	if !strings.Contains(o.AccountingStorage, "://") {
		path, hasScheme := strings.CutPrefix(o.AccountingStorage, schemeSQLite)
		abs(&path)
		if o.AccountingStorage = path; hasScheme {
			o.AccountingStorage = schemeSQLite + path
		}
	}
	abs(&o.StateDir)
	abs(&o.SlurmConf)
	abs(&o.Directory)
	abs(&o.AuthenticationConfig)
	abs(&o.BinDir)
	if o.BinDir == "" {
		o.BinDir = filepath.Dir(exe)
	}
	return o.check(euid)
}

func (o *Options) check(euid int) error {
	switch {
	case o.StateDir == "/":
		return errors.New("--state-dir: not the root directory")
	case o.Nodes < 0 || o.Nodes > 1000:
		return fmt.Errorf("--nodes: %d is not in 0..1000", o.Nodes)
	case o.CPUs < 0 || o.CPUs > 65533:
		return fmt.Errorf("--cpus: %d is not in 1..65533", o.CPUs)
	case o.GPUs < 0 || o.GPUs > 1024:
		return fmt.Errorf("--gpus: %d is not in 0..1024", o.GPUs)
	case o.APIPort < 0 || o.APIPort > 65535:
		return fmt.Errorf("--api-port: %d is not a port", o.APIPort)
	case o.LoginPort < 0 || o.LoginPort > 65535:
		return fmt.Errorf("--login-port: %d is not a port", o.LoginPort)
	case o.LoginPort != 0 && !o.Login:
		return errors.New("--login-port: only with --login")
	case o.Scheduler != "" && o.Scheduler != SchedulerInternal && o.Scheduler != SchedulerExternal &&
		o.Scheduler != SchedulerNone:
		return fmt.Errorf("--scheduler: %q is neither internal nor external nor none", o.Scheduler)
	case slices.ContainsFunc(o.EtcdServers, func(u string) bool { return !strings.HasPrefix(u, "unix:///") }):
		return errors.New("--etcd-server: it must be the URL of a Unix socket, as unix:///run/etcd.sock")
	case len(o.EtcdServers) > 0 && o.Fresh:
		return errors.New("--fresh: the state in the etcd of --etcd-server would remain; wipe it there, and leave out --fresh")
	case o.Directory != "" && euid != 0:
		return errors.New("--directory: jobs can run as other users only when root starts the cluster")
	case len(o.Users) > 0 && euid != 0:
		return errors.New("--user: jobs can run as other users only when root starts the cluster (sudo berth up --user NAME)")
	}
	if _, err := ParseMemory(o.Memory); err != nil {
		return fmt.Errorf("--memory: %w", err)
	}
	return nil
}

// DefaultStateDir returns the directory of a cluster's state without a flag.
func DefaultStateDir(euid int, env func(string) string) (string, error) {
	if euid == 0 {
		return "/var/lib/berth", nil
	}
	if d := env("XDG_STATE_HOME"); filepath.IsAbs(d) {
		return filepath.Join(d, "berth"), nil
	}
	if home := env("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "state", "berth"), nil
	}
	return "", errors.New("neither HOME nor XDG_STATE_HOME is set; name a directory with --state-dir")
}

// ParseMemory parses a size like Slurm's --mem, in MiB: a number with K, M (the
// default), G or T. "" is 0.
func ParseMemory(s string) (int64, error) {
	if s == "" {
		return 0, nil
	}
	digits, unit := s, byte('M')
	if last := s[len(s)-1]; last < '0' || last > '9' {
		digits, unit = s[:len(s)-1], last&^0x20
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	shift := strings.IndexByte("MGT", unit)
	if err != nil || n <= 0 || n > 1<<40 || (shift < 0 && unit != 'K') {
		return 0, fmt.Errorf("%q is not a size such as 4000M or 8G", s)
	}
	if unit == 'K' {
		return (n + 1023) / 1024, nil
	}
	return n << (10 * shift), nil
}
