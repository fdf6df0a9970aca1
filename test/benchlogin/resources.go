package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

const many = 1000 // idle terminals

// manyReport has the resources that many idle terminals used at their peak (memory in kB,
// and additional threads), and the descriptors left after them.
type manyReport struct{ peak, threads, files float64 }

// withTerminals opens idle terminals, each on a connection of its own, and calls f while
// they are open.
func (r *rig) withTerminals(t *target, count int, f func() float64) (float64, error) {
	for range count {
		c, s, err := r.terminal(t)
		if err != nil {
			return 0, err
		}
		defer func() { _ = c.Close() }()
		if err := startCat(s); err != nil {
			return 0, err
		}
	}
	return f(), nil
}

// startCat lets a session wait for input that does not arrive.
func startCat(s *ssh.Session) error {
	if _, err := s.StdinPipe(); err != nil {
		return err
	}
	return s.Start("exec cat")
}

// memory returns the memory that an idle session adds to the server's own processes, in kB.
func (r *rig) memory(t *target) (float64, error) {
	before := pss(t)
	return r.withTerminals(t, idle, func() float64 { return float64(pss(t)-before) / idle })
}

// threads returns the number of threads of the server while terminals are open.
func (r *rig) threads(t *target) (float64, error) {
	return r.withTerminals(t, idle, func() float64 { return float64(threadsOf(t)) })
}

// threadsOf returns the number of threads of the server.
func threadsOf(t *target) (n int) {
	for _, pid := range server(t) {
		tasks, _ := os.ReadDir("/proc/" + pid + "/task")
		n += len(tasks)
	}
	return n
}

// server returns the ids of the processes of a server, without those of its users.
func server(t *target) []string {
	own := map[string]bool{strconv.Itoa(t.cmd.Process.Pid): true}
	for range 4 { // generations
		stats, _ := filepath.Glob("/proc/[0-9]*/stat")
		for _, f := range stats {
			data, err := os.ReadFile(f)
			if err != nil {
				continue
			}
			head, rest, _ := strings.Cut(string(data), ") ")
			pid, name, _ := strings.Cut(head, " (")
			if f := strings.Fields(rest); len(f) > 1 && own[f[1]] && (name == "sshd" || name == "loginnode") {
				own[pid] = true
			}
		}
	}
	var out []string
	for pid := range own {
		out = append(out, pid)
	}
	return out
}

// pss returns the memory of the server in kB, its share of common pages included (PSS).
func pss(t *target) int {
	total := 0
	for _, pid := range server(t) {
		data, _ := os.ReadFile("/proc/" + pid + "/smaps_rollup")
		for line := range strings.Lines(string(data)) {
			if f := strings.Fields(line); len(f) > 1 && f[0] == "Pss:" {
				n, _ := strconv.Atoi(f[1])
				total += n
			}
		}
	}
	return total
}

// manyMemory returns the memory of one of many idle terminals, in kB, and sets r.many.
func (r *rig) manyMemory(t *target) (float64, error) {
	before, threads, files := pss(t), threadsOf(t), filesOf(t)
	each, err := r.withTerminals(t, many, func() float64 {
		r.many.peak = float64(pss(t))
		r.many.threads = float64(threadsOf(t) - threads)
		return (r.many.peak - float64(before)) / many
	})
	r.many.files = float64(awaitZero(func() int { return filesOf(t) - files }))
	return each, err
}

// manyAgain opens as many terminals again and returns by how many percent the memory exceeds
// the peak of the first time: a leak would show here.
func (r *rig) manyAgain(t *target) (float64, error) {
	return r.withTerminals(t, many, func() float64 {
		return max(0, 100*(float64(pss(t))/r.many.peak-1))
	})
}

// awaitZero waits until f returns 0 or less, for 15 seconds at most. It returns the last
// number, or 0 if it is less.
func awaitZero(f func() int) (n int) {
	for end := time.Now().Add(15 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if n = f(); n <= 0 {
			return 0
		}
	}
	return n
}

// filesOf returns the number of open file descriptors of the server.
func filesOf(t *target) (n int) {
	for _, pid := range server(t) {
		files, _ := os.ReadDir("/proc/" + pid + "/fd")
		n += len(files)
	}
	return n
}

// pids returns the ids of the user's processes.
func (r *rig) pids() (own []int) {
	if r.uid == "" {
		return nil
	}
	all, _ := filepath.Glob("/proc/[0-9]*/status")
	for _, f := range all {
		data, _ := os.ReadFile(f)
		if strings.Contains(string(data), "\nUid:\t"+r.uid+"\t") {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(f)))
			own = append(own, pid)
		}
	}
	return own
}
