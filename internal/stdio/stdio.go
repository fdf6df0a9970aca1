// Package stdio describes the process of a command: its streams, environment, clock,
// directory and user. Commands get it as a value, so that tests can replace it; only main
// calls System.
package stdio

import (
	"bytes"
	"context"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/berth-hpc/berth/internal/filelimit"
)

// Streams are the three standard streams. Data goes to Out, messages to Err.
type Streams struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer
}

// Process is the environment in which a command runs. Its functions are safe for
// concurrent use, and not nil unless their comments say otherwise.
type Process struct {
	Streams

	LookupEnv func(name string) (string, bool)
	Environ   func() []string // NAME=value, as os.Environ
	Now       func() time.Time
	Dir       func() (string, error) // current directory, absolute
	Hostname  func() (string, error)
	ReadFile  func(path string) ([]byte, error)
	// OpenFiles is the limit of open files at the start of the process; nil:
	// unknown.
	OpenFiles func() (soft uint64, ok bool)
	// Getent looks up a name or number in a database of the host's name service,
	// such as group, like getent(1); nil: only files are read.
	Getent func(database, key string) (line string, ok bool)
	Width  func() int // columns of the terminal at Out; 0: Out is not a terminal

	PID      int
	UID, GID int // real ids
}

// WithEnv returns a copy of p with the variables; those with an empty value are not set.
func (p *Process) WithEnv(variables map[string]string) *Process {
	q := *p
	q.LookupEnv = func(name string) (string, bool) {
		if v, ok := variables[name]; ok {
			return v, v != ""
		}
		return p.LookupEnv(name)
	}
	q.Environ = func() []string {
		out := slices.DeleteFunc(p.Environ(), func(v string) bool {
			name, _, _ := strings.Cut(v, "=")
			_, changed := variables[name]
			return changed
		})
		for _, name := range slices.Sorted(maps.Keys(variables)) {
			if v := variables[name]; v != "" {
				out = append(out, name+"="+v)
			}
		}
		return out
	}
	return &q
}

// Print writes text to Out.
func (s Streams) Print(text string) error {
	_, err := io.WriteString(s.Out, text)
	return err
}

// Warn writes a line to Err.
func (s Streams) Warn(text string) {
	_, _ = io.WriteString(s.Err, text+"\n") // an error cannot be reported elsewhere
}

// Repeat calls once. Unless every is 0, it repeats that at this interval and prints an empty
// line before each repetition. It returns the first error, or that of ctx.
func (s Streams) Repeat(ctx context.Context, every time.Duration, once func() error) error {
	for {
		if err := once(); err != nil || every == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(every):
		}
		if err := s.Print("\n"); err != nil {
			return err
		}
	}
}

// Umask returns the umask of the process, or -1 if it is unknown.
func (p *Process) Umask() int {
	text, err := p.ReadFile("/proc/self/status")
	if err != nil {
		return -1
	}
	for line := range strings.SplitSeq(string(text), "\n") {
		if v, ok := strings.CutPrefix(line, "Umask:"); ok {
			if n, err := strconv.ParseInt(strings.TrimSpace(v), 8, 32); err == nil {
				return int(n)
			}
		}
	}
	return -1
}

// Group returns the group of this host with the given name or number, from /etc/group or
// the other sources of its name service (SSSD, LDAP).
func (p *Process) Group(text string) (name string, gid int64, ok bool) {
	data, _ := p.ReadFile("/etc/group") // without it, the other sources remain
	for line := range strings.Lines(string(data)) {
		if name, gid, ok = parseGroup(line); ok && (name == text || strconv.FormatInt(gid, 10) == text) {
			return name, gid, true
		}
	}
	if p.Getent == nil || text == "" || strings.HasPrefix(text, "-") {
		return "", 0, false
	}
	line, ok := p.Getent("group", text)
	if !ok {
		return "", 0, false
	}
	return parseGroup(line)
}

// parseGroup parses a line of group(5).
func parseGroup(line string) (name string, gid int64, ok bool) {
	f := strings.Split(line, ":")
	if len(f) < 3 {
		return "", 0, false
	}
	gid, err := strconv.ParseInt(f[2], 10, 64)
	return f[0], gid, err == nil
}

// getentTimeout is the time limit of a query of the name service.
const getentTimeout = 10 * time.Second

// getent queries the name service with getent(1). Programs are built without cgo, so Go's
// own functions read only files.
func getent(database, key string) (line string, ok bool) {
	ctx, cancel := context.WithTimeout(context.Background(), getentTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, "getent", database, key).Output()
	line, _, _ = strings.Cut(string(out), "\n")
	return line, err == nil && line != ""
}

// Session returns the session id of the process, or 0 if it is unknown.
func (p *Process) Session() int32 {
	text, err := p.ReadFile("/proc/self/stat")
	if err != nil {
		return 0
	}
	// The name of the program is in parentheses and may contain blanks.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 4 {
		return 0
	}
	id, err := strconv.ParseInt(fields[3], 10, 32)
	if err != nil {
		return 0
	}
	return int32(id)
}

// Env returns the value of an environment variable, empty if it is not set.
func (p *Process) Env(name string) string {
	v, _ := p.LookupEnv(name)
	return v
}

// System returns the Process of this program.
func System() *Process {
	return &Process{
		Streams:   Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr},
		LookupEnv: os.LookupEnv,
		Environ:   os.Environ,
		Now:       time.Now,
		Dir:       os.Getwd,
		Hostname:  os.Hostname,
		ReadFile:  os.ReadFile,
		OpenFiles: filelimit.AtStart,
		Getent:    getent,
		Width:     func() int { return terminalWidth(os.Stdout) },
		PID:       os.Getpid(),
		UID:       os.Getuid(),
		GID:       os.Getgid(),
	}
}
