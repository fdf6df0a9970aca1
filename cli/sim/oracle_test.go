package sim

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// easyStarts returns the starts of a plain implementation of EASY that counts
// processors: the first job that does not fit gets a reservation when enough
// processors will be free, and others start if they end before it or leave enough
// for it. It plans after every arrival and every end. A job that reaches its limit
// ends before other events of that second.
func easyStarts(processors int64, jobs [][4]int64) []int64 {
	starts := make([]int64, len(jobs))
	var queue, running []int
	free := processors
	freed := map[int]bool{}
	release := func(i int) {
		if !freed[i] {
			freed[i], free = true, free+jobs[i][2]
		}
	}
	limit := func(i int) int64 { return starts[i] + jobs[i][3] }
	start := func(i int, now int64) {
		starts[i], free, running = now, free-jobs[i][2], append(running, i)
	}
	pass := func(now int64) {
		for len(queue) > 0 && jobs[queue[0]][2] <= free {
			start(queue[0], now)
			queue = queue[1:]
		}
		if len(queue) == 0 {
			return
		}
		byLimit := slices.SortedFunc(slices.Values(running), func(a, b int) int { return int(limit(a) - limit(b)) })
		at, left := now, free
		for _, i := range byLimit { // other jobs that end at that instant free more
			if left >= jobs[queue[0]][2] && limit(i) > at {
				break
			}
			if !freed[i] {
				at, left = limit(i), left+jobs[i][2]
			}
		}
		left -= jobs[queue[0]][2]
		rest := []int{queue[0]}
		for _, i := range queue[1:] {
			ends := now+jobs[i][3] <= at
			switch {
			case jobs[i][2] > free || !ends && jobs[i][2] > left:
				rest = append(rest, i)
				continue
			case !ends:
				left -= jobs[i][2]
			}
			start(i, now)
		}
		queue = rest
	}
	for next := 0; next < len(jobs) || len(running) > 0; {
		first := -1 // of those that run, the one that ends first
		for _, i := range running {
			if first < 0 || starts[i]+jobs[i][1] < starts[first]+jobs[first][1] || starts[i]+jobs[i][1] == starts[first]+jobs[first][1] && i < first {
				first = i
			}
		}
		arrival := first < 0 || next < len(jobs) && jobs[next][0] <= starts[first]+jobs[first][1]
		now := int64(0)
		if arrival {
			now = jobs[next][0]
		} else {
			now = starts[first] + jobs[first][1]
		}
		for _, i := range running {
			if limit(i) == now {
				release(i)
			}
		}
		if arrival {
			queue = append(queue, next)
			next++
		} else {
			running = slices.DeleteFunc(running, func(i int) bool { return i == first })
			release(first)
		}
		pass(now)
	}
	return starts
}

// EASY and the default policy start every job of random traces when easyStarts does.
func TestEasyIsEasy(t *testing.T) {
	directory := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		processors := rapid.Int64Range(1, 12).Draw(t, "processors")
		var jobs [][4]int64 // submit, run, processors, limit
		var trace strings.Builder
		fmt.Fprintf(&trace, "; MaxProcs: %d\n", processors)
		at := int64(0)
		for i := range rapid.IntRange(1, 40).Draw(t, "jobs") {
			at += rapid.Int64Range(0, 20).Draw(t, "pause")
			run := rapid.Int64Range(1, 60).Draw(t, "run")
			j := [4]int64{at, run, rapid.Int64Range(1, processors).Draw(t, "size"), run + rapid.SampledFrom([]int64{0, 1, 10, 60}).Draw(t, "more")}
			jobs = append(jobs, j)
			fmt.Fprintf(&trace, "%d %d -1 %d %d -1 -1 %d %d -1 1 1 1 1 1 1 -1 -1\n", i+1, j[0], j[1], j[2], j[2], j[3])
		}
		file, starts := filepath.Join(directory, "trace.swf"), filepath.Join(directory, "starts")
		if err := os.WriteFile(file, []byte(trace.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		want := ""
		for i, s := range easyStarts(processors, jobs) {
			want += fmt.Sprintln(i+1, jobs[i][0], s, s+jobs[i][1], jobs[i][2])
		}
		for _, policy := range []string{"easy", "default"} {
			if _, err := simCommand(file, "--policy", policy, "--starts", starts); err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(starts)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != want {
				t.Fatalf("%s:\n%s\nthe plain algorithm:\n%s\nof\n%s", policy, got, want, trace.String())
			}
		}
	})
}
