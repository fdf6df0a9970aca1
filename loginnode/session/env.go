package session

import (
	"bufio"
	"bytes"
	"net/netip"
	"os"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/loginnode/auth"
)

// Bounds of what a client may put into the environment.
const (
	maxEnv      = 64
	maxEnvValue = 4096
)

// AcceptEnv is the default list of names that a client may set.
var AcceptEnv = []string{"LANG", "LC_*", "COLORTERM", "NO_COLOR"}

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)

// acceptable reports whether a client may set a variable.
func acceptable(patterns []string, name, value string) bool {
	if !envName.MatchString(name) || len(value) > maxEnvValue || strings.ContainsRune(value, 0) {
		return false
	}
	for _, p := range patterns {
		if ok, err := path.Match(p, name); err == nil && ok {
			return true
		}
	}
	return false
}

// environment is an ordered set of variables; the last value of a name wins.
type environment struct {
	index map[string]int
	list  []string
}

func (e *environment) set(name, value string) {
	if e.index == nil {
		e.index = map[string]int{}
	}
	if i, ok := e.index[name]; ok {
		e.list[i] = name + "=" + value
		return
	}
	e.index[name] = len(e.list)
	e.list = append(e.list, name+"="+value)
}

func (e *environment) add(pairs []string) {
	for _, p := range pairs {
		if name, value, ok := strings.Cut(p, "="); ok {
			e.set(name, value)
		}
	}
}

// base returns the environment that sshd sets, without the server's own. SSH_CLIENT is
// set and SHLVL is not, so that Debian's bash reads ~/.bashrc, where HPC users load
// their modules, also for `ssh host command`.
func base(u *auth.User, searchPath string, from, to netip.AddrPort) *environment {
	var e environment
	e.add(systemEnvironment("/etc/environment"))
	e.set("USER", u.Name)
	e.set("LOGNAME", u.Name)
	e.set("HOME", u.Home)
	e.set("PATH", searchPath)
	e.set("SHELL", u.Shell)
	e.set("MAIL", "/var/mail/"+u.Name)
	if tz, ok := os.LookupEnv("TZ"); ok {
		e.set("TZ", tz)
	}
	if from.IsValid() {
		rp, lp := strconv.Itoa(int(from.Port())), strconv.Itoa(int(to.Port()))
		e.set("SSH_CLIENT", from.Addr().String()+" "+rp+" "+lp)
		e.set("SSH_CONNECTION", from.Addr().String()+" "+rp+" "+to.Addr().String()+" "+lp)
	}
	return &e
}

// systemEnvironment parses a file of NAME=value lines, as pam_env(8) does.
func systemEnvironment(file string) []string {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	var out []string
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		name, value, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(lines.Text()), "export "), "=")
		if ok && envName.MatchString(name) {
			out = append(out, name+"="+strings.Trim(value, `"'`))
		}
	}
	return out
}
