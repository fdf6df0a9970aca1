package sim

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// contest is a trace of 4 processors, all of which user 1 has at first. Of the jobs that are
// submitted later, the two of user 1 are the first, and that of user 2 is the largest.
const contest = `; MaxProcs: 4
1 0 -1 1000 4 -1 -1 4 1000 -1 1 1 1 -1 1 -1 -1 -1
2 10 -1 1000 3 -1 -1 3 1000 -1 1 1 1 -1 1 -1 -1 -1
3 20 -1 1000 3 -1 -1 3 1000 -1 1 1 1 -1 1 -1 -1 -1
4 30 -1 1000 4 -1 -1 4 1000 -1 1 2 1 -1 1 -1 -1 -1
`

// startsOf returns the jobs in the order they start.
func startsOf(t *testing.T, args ...string) string {
	t.Helper()
	starts := filepath.Join(t.TempDir(), "starts")
	simReport(t, append(args, "--starts", starts)...)
	text, err := os.ReadFile(starts)
	if err != nil {
		t.Fatal(err)
	}
	lines := slices.Collect(strings.Lines(string(text)))
	when := func(line string) string {
		return strings.Repeat(" ", 9-len(strings.Fields(line)[2])) + strings.Fields(line)[2]
	}
	slices.SortStableFunc(lines, func(a, b string) int { return strings.Compare(when(a), when(b)) })
	var out []string
	for _, l := range lines {
		f := strings.Fields(l)
		out = append(out, f[0]+"@"+f[2])
	}
	return strings.Join(out, " ")
}

func TestWeights(t *testing.T) {
	inOrder := "1@0 2@1000 3@2000 4@3000"
	ahead := "1@0 4@1000 2@2000 3@3000"
	for _, c := range []struct{ weights, want string }{
		{"", inOrder},
		{"age=100000", inOrder},
		{"age=100000,qos=1000,partition=1000,assoc=1000", inOrder},
		{"jobsize=1000", ahead},
		{"fairshare=1000", ahead},
		{"fairshare=0,age=100000", inOrder},
		{"fairshare=1000,age=100000000", inOrder}, // ten seconds of age are worth more
	} {
		for _, policy := range []string{"fcfs", "easy", "conservative", "default"} {
			args := []string{smallFile(t, contest), "--policy", policy}
			if c.weights != "" {
				args = append(args, "--weights", c.weights)
			}
			if got := startsOf(t, args...); got != c.want {
				t.Errorf("%s, %q: %s, want %s", policy, c.weights, got, c.want)
			}
		}
	}
}

// Usage decays: user 1 used more, but five half-lives ago.
func TestUsageDecays(t *testing.T) {
	const trace = `; MaxProcs: 4
1 0 -1 9000 4 -1 -1 4 9000 -1 1 1 1 -1 1 -1 -1 -1
2 3024000 -1 1000 4 -1 -1 4 1000 -1 1 2 1 -1 1 -1 -1 -1
3 3024000 -1 1000 4 -1 -1 4 1000 -1 1 2 1 -1 1 -1 -1 -1
4 3024010 -1 1000 4 -1 -1 4 1000 -1 1 1 1 -1 1 -1 -1 -1
`
	if got, want := startsOf(t, smallFile(t, trace), "--weights", "fairshare=1000"), "1@0 2@3024000 4@3025000 3@3026000"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
