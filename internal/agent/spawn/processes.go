package spawn

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
	"time"
)

// Proc is a process as /proc describes it.
type Proc struct {
	PID, PPID, Group, Session int
	Zombie                    bool
}

// List returns all processes that are visible in /proc, except this one.
func List() []Proc {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil
	}
	self := os.Getpid()
	var all []Proc
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == self {
			continue
		}
		if p, ok := read(pid); ok {
			all = append(all, p)
		}
	}
	return all
}

// read parses /proc/PID/stat. It reads the fields after the command, which may
// contain blanks and parentheses.
func read(pid int) (Proc, bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return Proc{}, false
	}
	i := bytes.LastIndexByte(b, ')')
	if i < 0 {
		return Proc{}, false
	}
	f := bytes.Fields(b[i+1:])
	if len(f) < 4 {
		return Proc{}, false
	}
	n := func(k int) int { v, _ := strconv.Atoi(string(f[k])); return v }
	return Proc{PID: pid, PPID: n(1), Group: n(2), Session: n(3), Zombie: f[0][0] == 'Z'}, true
}

// Descendants returns the descendants of this process; those of pid 1 are all others.
func Descendants() []Proc {
	all := List()
	if os.Getpid() == 1 {
		return all
	}
	below := map[int]bool{os.Getpid(): true}
	for grew := true; grew; {
		grew = false
		for _, p := range all {
			if below[p.PPID] && !below[p.PID] {
				below[p.PID] = true
				grew = true
			}
		}
	}
	var d []Proc
	for _, p := range all {
		if below[p.PID] {
			d = append(d, p)
		}
	}
	return d
}

// Owns reports whether process pid was started with every one of the
// environment entries. Processes that cannot be read are not owned.
func Owns(pid int, entries ...string) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false
	}
	b = append([]byte{0}, b...)
	for _, e := range entries {
		if !bytes.Contains(b, []byte("\x00"+e+"\x00")) {
			return false
		}
	}
	return true
}

// Program returns the kernel's name of the program that process pid runs, or "" if it
// is unknown.
func Program(pid int) string {
	b, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm")
	return string(bytes.TrimSpace(b))
}

// Kill sends sig to the matching descendants and returns their number. Zombies do not
// count.
func Kill(sig syscall.Signal, match func(Proc) bool) int {
	n := 0
	for _, p := range Descendants() {
		if !p.Zombie && match(p) {
			syscall.Kill(p.PID, sig) //nolint:errcheck // it may have ended
			n++
		}
	}
	return n
}

// KillAll kills the matching descendants until there are none, which takes several
// attempts if they fork. It returns false if some are left after the timeout.
func KillAll(timeout time.Duration, match func(Proc) bool) bool {
	deadline := time.Now().Add(timeout)
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		if Kill(syscall.SIGKILL, match) == 0 {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(pause)
	}
}

// Everything matches every process.
func Everything(Proc) bool { return true }
