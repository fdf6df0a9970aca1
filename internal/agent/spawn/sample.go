package spawn

import (
	"bytes"
	"os"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/step"
)

// ticks is how many units of /proc's times are a second (USER_HZ, which is the
// same on every Linux), and tick one of them in microseconds.
const (
	ticks = 100
	tick  = 1_000_000 / ticks
)

// Sample tells what the processes in each of the sessions have used so far,
// with the children that they waited for, and which those are. Memory is what
// they have now, or the most that the leader has had.
func Sample(sessions map[int]bool) (used map[int]step.TaskUsage, pids map[int][]int32) {
	used, pids = map[int]step.TaskUsage{}, map[int][]int32{}
	for _, p := range Descendants() {
		if p.Zombie || !sessions[p.Session] {
			continue
		}
		u := used[p.Session]
		add(&u, p.PID, p.PID == p.Session)
		used[p.Session] = u
		pids[p.Session] = append(pids[p.Session], int32(p.PID))
	}
	return used, pids
}

// add reads what process pid has used into u.
func add(u *step.TaskUsage, pid int, leader bool) {
	dir := "/proc/" + strconv.Itoa(pid) + "/"
	stat, err := os.ReadFile(dir + "stat")
	if err != nil {
		return
	}
	f := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(f) < 22 {
		return
	}
	n := func(i int) int64 { // by the numbers of proc(5), less the two before
		v, _ := strconv.ParseInt(string(f[i-3]), 10, 64)
		return v
	}
	u.User += (n(14) + n(16)) * tick
	u.System += (n(15) + n(17)) * tick
	u.Pages += n(12) + n(13)
	u.VMSize += n(23)
	rss := n(24) * int64(os.Getpagesize())
	if peak := named(dir+"status", "VmHWM:") << 10; leader {
		rss = max(rss, peak)
	}
	u.RSS += rss
	u.Read += named(dir+"io", "rchar:")
	u.Write += named(dir+"io", "wchar:")
}

// named is the number behind a name in a file of /proc.
func named(file, name string) int64 {
	text, _ := os.ReadFile(file) // gone, or not ours to read: 0
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
