package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// side is one of the two systems.
type side struct {
	name    string // Berth or Slurm
	bin     string // directory of its commands
	own     []string
	root    []string // what root's commands have in the environment in addition
	work    string
	timeout time.Duration
	configs map[string]string // kubeconfigs of the users by name
	jobs    map[string]string // ids of the prepared jobs by name
	since   string            // when the first of them was submitted
}

// pair is both systems, and the users whose commands are compared.
type pair struct {
	berth, slurm *side
	users        []*user.User
	cluster      string // its name in slurm.conf
}

// sides returns both systems.
func (p *pair) sides() []*side { return []*side{p.slurm, p.berth} }

// newPair finds the reference and a local Berth cluster, which it starts if there is none;
// down stops what it started.
func newPair(ctx context.Context, o *options) (p *pair, down func(), err error) {
	if o.conf == "" {
		return nil, nil, errors.New("no reference Slurm: set SLURM_CONF, or use --slurm-conf")
	}
	if o.slurm == "" {
		sbatch, err := exec.LookPath("sbatch")
		if err != nil {
			return nil, nil, fmt.Errorf("no reference Slurm: %w", err)
		}
		o.slurm = filepath.Dir(sbatch)
	}
	if o.bin, err = filepath.Abs(o.bin); err != nil {
		return nil, nil, err
	}
	p = &pair{}
	if p.cluster, err = clusterName(o.conf); err != nil {
		return nil, nil, err
	}
	if p.users, err = usersOf(o.users); err != nil {
		return nil, nil, err
	}
	work, err := os.MkdirTemp("", "differential")
	if err != nil {
		return nil, nil, err
	}
	down = func() { os.RemoveAll(work) }
	if err := os.Chmod(work, 0o777|os.ModeSticky); err != nil {
		return nil, down, err
	}
	if o.state == "" {
		o.state = filepath.Join(work, "state")
		if err := p.up(ctx, o); err != nil {
			down()
			return nil, nil, err
		}
		down = func() {
			if err := exec.Command(filepath.Join(o.bin, "berth"), "down", "--state-dir", o.state).Run(); err != nil {
				fmt.Fprintln(os.Stderr, "differential: berth down:", err)
			}
			os.RemoveAll(work)
		}
	}
	p.berth = &side{name: "Berth", bin: o.bin, work: work, timeout: o.timeout, jobs: map[string]string{},
		root: []string{"KUBECONFIG=" + filepath.Join(o.state, "kubeconfig")}}
	p.slurm = &side{name: "Slurm", bin: o.slurm, work: work, timeout: o.timeout, jobs: map[string]string{},
		own: []string{"SLURM_CONF=" + o.conf}}
	if p.berth.configs, err = keepConfigs(work, p.users); err != nil {
		down()
		return nil, nil, err
	}
	return p, down, nil
}

// keepConfigs copies the kubeconfigs that a local cluster has written for its users into
// work, and returns the copies by user: another local cluster of the same users, started
// meanwhile, replaces the files.
func keepConfigs(work string, users []*user.User) (map[string]string, error) {
	configs := map[string]string{}
	for _, u := range users {
		data, err := os.ReadFile(filepath.Join(u.HomeDir, ".local/state/berth/user.kubeconfig"))
		if errors.Is(err, os.ErrNotExist) {
			continue // the cluster is found in another way
		}
		if err != nil {
			return nil, err
		}
		file := filepath.Join(work, u.Username+".kubeconfig")
		if err := os.WriteFile(file, data, 0o600); err != nil {
			return nil, err
		}
		if c := credential(u); os.Geteuid() == 0 && c != nil {
			if err := os.Chown(file, int(c.Uid), int(c.Gid)); err != nil {
				return nil, err
			}
		}
		configs[u.Username] = file
	}
	return configs, nil
}

// clusterName returns the ClusterName of a slurm.conf.
func clusterName(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	for l := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(l, "="); ok && strings.EqualFold(strings.TrimSpace(key), "ClusterName") {
			return strings.TrimSpace(value), nil
		}
	}
	return "", fmt.Errorf("%s has no ClusterName", file)
}

// usersOf returns the users of a list with commas; the caller if it is empty.
func usersOf(list string) ([]*user.User, error) {
	if list == "" {
		u, err := user.Current()
		return []*user.User{u, u}, err
	}
	var out []*user.User
	for name := range strings.SplitSeq(list, ",") {
		u, err := user.Lookup(name)
		if err != nil {
			return nil, err
		}
		out = append(out, u)
	}
	if len(out) != 2 {
		return nil, errors.New("--users needs two users")
	}
	return out, nil
}

// nextID matches the line of scontrol show config with the id of Slurm's next job.
var nextID = regexp.MustCompile(`(?m)^NEXT_JOB_ID\s*=\s*(\d+)$`)

// sameIDs writes a slurm.conf beside the state directory that includes that of the
// reference, with the id of Slurm's next job as the first one. It returns the file.
func sameIDs(ctx context.Context, o *options) (string, error) {
	c := exec.CommandContext(ctx, filepath.Join(o.slurm, "scontrol"), "show", "config")
	c.Env = append(os.Environ(), "SLURM_CONF="+o.conf)
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("scontrol show config: %w", err)
	}
	id := nextID.FindSubmatch(out)
	if id == nil {
		return "", errors.New("scontrol show config prints no NEXT_JOB_ID")
	}
	conf, err := filepath.Abs(o.conf)
	if err != nil {
		return "", err
	}
	file := filepath.Join(filepath.Dir(o.state), "slurm.conf")
	return file, os.WriteFile(file, fmt.Appendf(nil, "Include %s\nFirstJobId=%s\n", conf, id[1]), 0o644)
}

// up starts a local cluster of the shape of the reference, whose first job has the id of
// Slurm's next one: columns cut ids at the same place only if they are as wide.
func (p *pair) up(ctx context.Context, o *options) error {
	conf, err := sameIDs(ctx, o)
	if err != nil {
		return err
	}
	args := []string{"up", "--state-dir", o.state, "--slurm-conf", conf}
	if o.users != "" {
		for _, u := range p.users {
			args = append(args, "--user", u.Username)
		}
	}
	out, err := exec.CommandContext(ctx, filepath.Join(o.bin, "berth"), args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("berth up: %w: %s", err, out)
	}
	return nil
}

// output is what a command answered.
type output struct {
	out, err string
	code     int
}

// run runs a command as user u (nil: the caller) with more variables and a standard input.
func (s *side) run(u *user.User, variables []string, input, command string, args ...string) output {
	ctx, cancel := context.WithTimeout(context.Background(), s.timeout)
	defer cancel()
	c := exec.CommandContext(ctx, filepath.Join(s.bin, command), args...)
	c.Dir, c.Stdin, c.WaitDelay = s.work, strings.NewReader(input), time.Second
	var out, err bytes.Buffer
	c.Stdout, c.Stderr = &out, &err
	c.Env = append([]string{"LANG=C.UTF-8", "PATH=" + s.bin + ":/usr/bin:/bin"}, s.own...)
	if u == nil {
		c.Env = append(c.Env, "USER=root", "HOME=/root")
		c.Env = append(c.Env, s.root...)
	} else {
		c.Env = append(c.Env, "USER="+u.Username, "LOGNAME="+u.Username, "HOME="+u.HomeDir)
		if strconv.Itoa(os.Geteuid()) == u.Uid {
			c.Env = append(c.Env, s.root...)
		} else {
			c.SysProcAttr = &syscall.SysProcAttr{Credential: credential(u)}
			if file := s.configs[u.Username]; file != "" {
				c.Env = append(c.Env, "KUBECONFIG="+file)
			}
		}
	}
	c.Env = append(c.Env, variables...)
	failure := c.Run()
	code := 0
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		code = -1
	case errors.As(failure, &exit):
		code = exit.ExitCode()
	case failure != nil:
		err.WriteString(failure.Error())
		code = -2
	}
	return output{out.String(), err.String(), code}
}

// credential returns the ids of u.
func credential(u *user.User) *syscall.Credential {
	uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
	if errors.Join(err1, err2) != nil {
		return nil
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid), Groups: []uint32{uint32(gid)}}
}
