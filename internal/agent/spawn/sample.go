package spawn

import (
	"bytes"
	"os"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/step"
)

// ticks is the number of clock ticks of /proc in a second (USER_HZ, the same on every
// Linux), and tick the length of one in microseconds.
const (
	ticks = 100
	tick  = 1_000_000 / ticks
)

// Sample returns the usage of the processes of each session so far, including children for
// which they waited, and their pids. Memory is their current memory, or
// for the session's leader its maximum.
func Sample(sessions map[int]bool) (used map[int]step.TaskUsage, pids map[int][]int32) {
	used, pids = map[int]step.TaskUsage{}, map[int][]int32{}
	for _, p := range Descendants() {
		if p.Zombie || !sessions[p.Session] {
			continue
		}
		u := used[p.Session]
		addUsage(&u, p.PID, p.PID == p.Session)
		used[p.Session] = u
		pids[p.Session] = append(pids[p.Session], int32(p.PID))
	}
	return used, pids
}

// addUsage adds what process pid has used to u.
func addUsage(u *step.TaskUsage, pid int, leader bool) {
	dir := "/proc/" + strconv.Itoa(pid) + "/"
	stat, err := os.ReadFile(dir + "stat")
	if err != nil {
		return
	}
	f := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(f) < 22 {
		return
	}
	n := func(i int) int64 { // field i of proc(5); the first two precede f
		v, _ := strconv.ParseInt(string(f[i-3]), 10, 64)
		return v
	}
	u.User += (n(14) + n(16)) * tick
	u.System += (n(15) + n(17)) * tick
	u.Pages += n(12) + n(13)
	u.VMSize += n(23)
	rss := n(24) * int64(os.Getpagesize())
	if peak := numberAfter(dir+"status", "VmHWM:") << 10; leader {
		rss = max(rss, peak)
	}
	u.RSS += rss
	u.Read += numberAfter(dir+"io", "rchar:")
	u.Write += numberAfter(dir+"io", "wchar:")
}

// numberAfter returns the number after a name in a file of /proc, or 0.
func numberAfter(file, name string) int64 {
	text, _ := os.ReadFile(file) // 0 if the process has ended or the file is not readable
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			if fields := strings.Fields(rest); len(fields) > 0 {
				v, _ := strconv.ParseInt(fields[0], 10, 64)
				return v
			}
		}
	}
	return 0
}
