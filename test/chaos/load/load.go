// Package load drives a cluster like its users: several of them submit jobs of all kinds at
// the same time and change them, and everything that they do is recorded.
package load

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/berth-hpc/berth/test/chaos/cluster"
	"github.com/berth-hpc/berth/test/chaos/history"
)

// patience is the limit of a single command.
const patience = time.Minute

// Load is what the users of one run do. Its methods are safe for concurrent use.
type Load struct {
	Cluster *cluster.Cluster
	Pause   time.Duration // mean time between two commands of one terminal
	Quick   bool          // no job that reaches its time limit, which is a minute at least

	mu      sync.Mutex
	history history.History
	later   sync.WaitGroup
}

// Prepare writes the script of the jobs.
func (l *Load) Prepare() error {
	path := filepath.Join(l.Cluster.Output, "chaos.sh")
	if err := os.WriteFile(path, []byte(Script(l.Cluster.Output)), 0o600); err != nil {
		return err
	}
	return os.Chmod(path, 0o755)
}

// Run lets the users work until ctx ends. The same seed makes the same choices; what they
// result in depends on the cluster.
func (l *Load) Run(ctx context.Context, seed uint64) {
	var wg sync.WaitGroup
	for i, u := range l.Cluster.Users {
		// Two terminals of each user, so that commands of one user overlap.
		for terminal := range 2 {
			w := &worker{Load: l, user: u, name: fmt.Sprintf("u%dt%d", i, terminal),
				random: rand.New(rand.NewPCG(seed, uint64(10*i+terminal)))}
			wg.Go(func() { w.run(ctx) })
		}
	}
	wg.Wait()
	l.later.Wait()
}

// History returns what was recorded until now.
func (l *Load) History() history.History {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.history
}

// Operate runs a command about a job and records it.
func (l *Load) Operate(ctx context.Context, u cluster.User, verb string, job int64, args ...string) cluster.Answer {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	a := l.Cluster.Run(ctx, u, args[0], args[1:]...)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.history.Operations = append(l.history.Operations, history.Operation{Verb: verb, User: u.Name, Job: job, Task: -1,
		Call: a.Call, Return: a.Return, Exit: a.Exit, Answer: a.Out + a.Err})
	return a
}

// worker is one terminal of a user.
type worker struct {
	*Load
	user   cluster.User
	name   string
	random *rand.Rand
	count  int
	jobs   []*history.Submission // accepted, oldest first
}

// run chooses and runs commands.
func (w *worker) run(ctx context.Context) {
	total := 0
	for _, k := range kinds {
		total += k.weight
	}
	for ctx.Err() == nil {
		n := w.random.IntN(total)
		for _, k := range kinds {
			if n -= k.weight; n < 0 {
				k.do(ctx, w)
				break
			}
		}
		pause := time.Duration(w.random.ExpFloat64() * float64(w.Pause))
		select {
		case <-ctx.Done():
		case <-time.After(min(pause, 5*w.Pause)):
		}
	}
}

// submit runs sbatch for the job and records it. more are further options.
func (w *worker) submit(j history.Job, name string, more ...string) {
	w.count++
	if name == "" {
		name = fmt.Sprintf("%s-%d", w.name, w.count)
	}
	args := append([]string{"--parsable", "-J", name, "-o", "/dev/null", "--mem=10"}, options(&j)...)
	args = append(args, more...)
	args = append(args, scriptArgs(&j)...)
	w.record(j, name, "sbatch", args)
}

// record runs a command that submits a job. It goes on when ctx of the run ends: who has
// submitted waits for the answer.
func (w *worker) record(j history.Job, name, command string, args []string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	run := w.Cluster.Run
	if w.Cluster.Login && w.random.IntN(2) == 0 {
		run = w.Cluster.RunLogin
	}
	a := run(ctx, w.user, command, args...)
	s := history.Submission{Name: name, User: w.user.Name, Args: append([]string{command}, args...), Call: a.Call,
		Return: a.Return, Exit: a.Exit, Answer: strings.TrimSpace(a.Out + " " + a.Err), ID: idOf(command, a), Job: j}
	if s.ID != 0 && command == "sbatch" {
		w.jobs = append(w.jobs, &s)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.history.Submissions = append(w.history.Submissions, s)
}

var (
	parsable = regexp.MustCompile(`^(\d+)(;|$)`)
	granted  = regexp.MustCompile(`(?:Granted job allocation|job) (\d+)`)
)

// idOf returns the id in the answer of a submission; 0: it has none.
func idOf(command string, a cluster.Answer) int64 {
	m := parsable.FindStringSubmatch(a.Out)
	if command != "sbatch" {
		m = granted.FindStringSubmatch(a.Err)
	}
	if m == nil {
		return 0
	}
	id, _ := strconv.ParseInt(m[1], 10, 64)
	return id
}

// options are those of sbatch for what the job requests.
func options(j *history.Job) []string {
	args := []string{"-N", strconv.FormatInt(max(1, j.Nodes), 10)}
	if j.Steps {
		args = append(args, "--ntasks-per-node=1")
	}
	args = append(args, "-c", strconv.FormatInt(max(1, j.CPUs), 10))
	add := func(set bool, option string) {
		if set {
			args = append(args, option)
		}
	}
	add(j.GPUs > 0, fmt.Sprintf("--gpus-per-node=%d", j.GPUs))
	add(j.License != "", "-L"+j.License)
	add(j.Limit > 0, fmt.Sprintf("-t%d", int(j.Limit.Minutes())))
	add(j.Held, "-H")
	add(j.Singleton, "-dsingleton")
	add(j.Dependency.Kind != "", fmt.Sprintf("-d%s:%d", j.Dependency.Kind, j.Dependency.On))
	if len(j.Tasks) > 0 {
		text := fmt.Sprintf("-a%d-%d", j.Tasks[0], j.Tasks[len(j.Tasks)-1])
		if j.Throttle > 0 {
			text += "%" + strconv.Itoa(j.Throttle)
		}
		args = append(args, text)
	}
	return args
}

// scriptArgs are the script and its arguments.
func scriptArgs(j *history.Job) []string {
	args := []string{"chaos.sh", strconv.FormatInt(j.Run.Milliseconds(), 10), strconv.Itoa(j.ExitCode)}
	if j.Steps {
		args = append(args, "steps")
	}
	return args
}
