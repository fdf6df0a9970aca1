package sbatch

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/internal/kube"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/status"
)

// cluster is a fake that accepts every job, or refuses it with err.
type cluster struct {
	got  *jobs.Submission
	err  error
	rows [][]status.Job // the responses to Jobs, in order
}

func (c *cluster) Submit(_ context.Context, s *jobs.Submission) (*jobs.Submitted, error) {
	c.got = s
	return &jobs.Submitted{ID: 7, Partition: "debug"}, c.err
}

func (c *cluster) Jobs(context.Context, jobs.Filter) (*status.JobList, error) {
	rows := c.rows[0]
	if len(c.rows) > 1 {
		c.rows = c.rows[1:]
	}
	return &status.JobList{Items: rows}, nil
}

func (c *cluster) Partitions(context.Context) (*status.PartitionList, error) {
	return &status.PartitionList{Items: []status.Partition{{Name: "debug"}}}, nil
}

func (c *cluster) Cluster(_ context.Context, names []string) (string, error) {
	if names[0] != "ref" {
		return "", slurmerr.New(slurmerr.Refused, "No cluster")
	}
	return "ref", nil
}

func (c *cluster) Owner(_ context.Context, user string) (*jobs.Owner, error) {
	if user != "bob" {
		return nil, nil
	}
	return &jobs.Owner{Name: "bob", UID: 1001, Namespace: "user-bob"}, nil
}

const script = "#!/bin/sh\n#SBATCH -J ring # a comment\n#SBATCH -o ring-%j.out -t 0-2:00:00\necho \"$@\"\n"

func call(c *cluster, stdin string, env []string, args ...string) (out, messages string, code int) {
	var o, e strings.Builder
	p := &stdio.Process{
		Streams:   stdio.Streams{In: strings.NewReader(stdin), Out: &o, Err: &e},
		LookupEnv: func(string) (string, bool) { return "", false },
		Environ:   func() []string { return env },
		Now:       func() time.Time { return time.Unix(1800000000, 0).UTC() },
		Dir:       func() (string, error) { return "/home/alice", nil },
		Hostname:  func() (string, error) { return "login", nil },
		UID:       user,
		ReadFile: func(name string) ([]byte, error) {
			switch name {
			case "/home/alice/job.sh":
				return []byte(script), nil
			case "/home/alice/dir":
				return nil, &fs.PathError{Op: "read", Path: name, Err: syscall.EISDIR}
			case "/proc/self/status":
				return []byte("Name:\tsbatch\nUmask:\t0027\n"), nil
			case "/etc/group":
				return []byte("root:x:0:\nlab:x:2000:alice,bob\n"), nil
			}
			return nil, fs.ErrNotExist
		},
	}
	err := New(p, func() (Cluster, error) { return c, nil }).Run(context.Background(), args)
	slurmerr.Print(&e, "sbatch", err)
	return o.String(), e.String(), slurmerr.ExitCode(err)
}

func TestSubmit(t *testing.T) {
	c := &cluster{}
	out, messages, code := call(
		c,
		"",
		[]string{"A=1", "SBATCH_PARTITION=debug", "SLURM_JOB_ID=5", "SLURM_NTASKS=9", "BERTH_JOB_ID=5"},
		"-N2",
		"job.sh",
		"one",
		"two words",
	)
	if out != "Submitted batch job 7\n" || messages != "" || code != 0 {
		t.Fatalf("%q %q %d", out, messages, code)
	}
	j := c.got.Job
	if j.Name != "ring" || j.Time.Limit != 120 || j.Shape.MinNodes != 2 || j.Shape.Tasks != 0 ||
		!slices.Equal(j.Partitions, []string{"debug"}) {
		t.Errorf("%+v", j)
	}
	b := j.Batch
	if b.WorkDir != "/home/alice" || b.Command != "/home/alice/job.sh" || b.Output != "ring-%j.out" ||
		!slices.Equal(b.Args, []string{"one", "two words"}) ||
		b.Umask != 0o27+1 {
		t.Errorf("%+v", b)
	}
	if string(c.got.Script) != script {
		t.Errorf("script changed: %q", c.got.Script)
	}
	want := []string{
		"A=1",
		"SBATCH_PARTITION=debug",
		"SLURM_SUBMIT_DIR=/home/alice",
		"SLURM_SUBMIT_HOST=login",
		"SLURM_PRIO_PROCESS=0",
	}
	if !slices.Equal(c.got.Environment, want) {
		t.Errorf("environment %q", c.got.Environment)
	}
}

func TestDirectoryAsScript(t *testing.T) {
	if _, messages, code := call(&cluster{}, "", nil, "dir"); messages != "sbatch: error: Batch script is empty!\n" ||
		code != 1 {
		t.Errorf("%q %d", messages, code)
	}
}

func TestOutputForms(t *testing.T) {
	for _, tt := range []struct {
		args      []string
		stdin     string
		out, name string
	}{
		{[]string{"--parsable", "job.sh"}, "", "7\n", "ring"},
		{[]string{"--quiet", "job.sh"}, "", "", "ring"},
		{[]string{"--wrap", "echo hi"}, "", "Submitted batch job 7\n", "wrap"},
		{[]string{"-t", "5"}, "#!/bin/sh\ntrue\n", "Submitted batch job 7\n", "sbatch"},
	} {
		c := &cluster{}
		out, messages, code := call(c, tt.stdin, nil, tt.args...)
		if out != tt.out || messages != "" || code != 0 || c.got.Job.Name != tt.name {
			t.Errorf("%v: %q %q %d %s", tt.args, out, messages, code, c.got.Job.Name)
		}
	}
}

func TestExport(t *testing.T) {
	env := []string{"HOME=/h", "A=1", "B=2", "SLURM_CONF=/c"}
	for export, want := range map[string][]string{
		"NONE":        {"SLURM_CONF=/c"},
		"ALL,C=3":     {"HOME=/h", "A=1", "B=2", "SLURM_CONF=/c", "C=3"},
		"A,D='x,y'":   {"SLURM_CONF=/c", "A=1", "D='x,y'"},
		"NIL":         {"SLURM_CONF=/c"},
		"MISSING,B=5": {"SLURM_CONF=/c", "B=5"},
	} {
		c := &cluster{}
		if _, messages, code := call(c, "", env, "--export="+export, "job.sh"); code != 0 {
			t.Fatal(messages)
		}
		got := slices.DeleteFunc(c.got.Environment, func(e string) bool {
			return strings.HasPrefix(e, "SLURM_SUBMIT") || strings.HasPrefix(e, "SLURM_PRIO") ||
				strings.HasPrefix(e, "SLURM_EXPORT") ||
				strings.HasPrefix(e, "SLURM_GET")
		})
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", export, got, want)
		}
	}
}

// As in Slurm, an unknown cluster comes before what its controller would refuse.
func TestClusterBeforeRefusal(t *testing.T) {
	for name, want := range map[string]string{
		"nosuch": "sbatch: error: No cluster\n",
		"ref":    "sbatch: error: Batch job submission failed: Invalid generic resource (gres) specification\n",
	} {
		for _, refused := range []string{"--mem-per-gpu=5", "--gpus-per-socket=1"} {
			_, messages, _ := call(&cluster{}, "", nil, "-M", name, refused, "job.sh")
			if messages != want {
				t.Errorf("%s %s: %q", name, refused, messages)
			}
		}
	}
}

func TestRefusedByTheCluster(t *testing.T) {
	denied := &kube.Error{Kind: kube.Denied, Message: "Invalid partition name specified"}
	_, messages, code := call(&cluster{err: denied}, "", nil, "-p", "debug,nosuch", "job.sh")
	if messages != "sbatch: error: invalid partition specified: nosuch\nsbatch: error: Batch job submission failed: Invalid partition name specified\n" ||
		code != 1 {
		t.Errorf("%q %d", messages, code)
	}
	name := &kube.Error{Kind: kube.Denied, Message: "Invalid node name specified"}
	_, messages, _ = call(&cluster{err: name}, "", nil, "-p", "nosuch", "-w", "n[1", "job.sh")
	if messages != "sbatch: error: Batch job submission failed: Invalid node name specified\n" {
		t.Errorf("%q", messages)
	}
	gone := &kube.Error{Kind: kube.Unreachable, Message: "cannot reach it", Cause: errors.New("x")}
	if _, messages, code = call(
		&cluster{err: gone},
		"",
		nil,
		"job.sh",
	); messages != "sbatch: error: Batch job submission failed: cannot reach it\n" ||
		code != 1 {
		t.Errorf("%q %d", messages, code)
	}
	two := &kube.Error{
		Kind:    kube.Denied,
		Message: "CPU count per node can not be satisfied\nRequested node configuration is not available",
	}
	if _, messages, _ = call(&cluster{err: two}, "", nil, "-c5", "job.sh"); messages !=
		"sbatch: error: CPU count per node can not be satisfied\nsbatch: error: Batch job submission failed: Requested node configuration is not available\n" {
		t.Errorf("%q", messages)
	}
	if _, messages, _ = call(
		&cluster{err: denied},
		"",
		nil,
		"--test-only",
		"job.sh",
	); messages != "allocation failure: Invalid partition name specified\n" {
		t.Errorf("%q", messages)
	}
}

func TestWarnings(t *testing.T) {
	_, messages, code := call(&cluster{}, "", nil, "--mcs-label=a", "--mcs-label=b", "job.sh")
	if messages != "sbatch: warning: --mcs-label has no effect: there are no MCS labels\n" || code != 0 {
		t.Errorf("%q %d", messages, code)
	}
	if _, messages, code = call(&cluster{}, "", nil, "--bb=x", "job.sh"); code != 1 {
		t.Errorf("%q %d", messages, code)
	}
}

func TestForOthersAndElsewhere(t *testing.T) {
	c := &cluster{}
	if out, messages, code := call(
		c,
		"",
		nil,
		"--uid=bob",
		"-M",
		"ref",
		"job.sh",
	); out != "Submitted batch job 7 on cluster ref\n" ||
		c.got.Namespace != "user-bob" {
		t.Errorf("%q %q %d %+v", out, messages, code, c.got)
	}
	if out, _, _ := call(c, "", nil, "--parsable", "--clusters=ref", "job.sh"); out != "7;ref\n" ||
		c.got.Namespace != "" {
		t.Errorf("%q", out)
	}
	if _, messages, code := call(
		c,
		"",
		nil,
		"--uid=nobody",
		"job.sh",
	); messages != "sbatch: error: Invalid --uid specification\n" ||
		code != 255 {
		t.Errorf("%q %d", messages, code)
	}
	if _, messages, code := call(c, "", nil, "-M", "other", "job.sh"); messages != "sbatch: error: No cluster\n" || code != 1 {
		t.Errorf("%q %d", messages, code)
	}
	for _, group := range []string{"lab", "2000"} {
		if out, messages, _ := call(
			c,
			"",
			nil,
			"--uid=bob",
			"--gid="+group,
			"job.sh",
		); out != "Submitted batch job 7\n" ||
			*c.got.Job.Batch.Group != (job.Group{Name: "lab", GID: 2000}) {
			t.Errorf("%q %q %+v", out, messages, c.got.Job.Batch.Group)
		}
	}
	if _, messages, code := call(
		c,
		"",
		nil,
		"--gid=nosuch",
		"job.sh",
	); messages != "sbatch: error: Invalid --gid specification\n" ||
		code != 255 {
		t.Errorf("%q %d", messages, code)
	}
	user = 1000
	defer func() { user = 0 }()
	if _, messages, code := call(
		c,
		"",
		nil,
		"--gid=lab",
		"job.sh",
	); messages != "sbatch: error: --gid only permitted by root user\n" ||
		code != 255 {
		t.Errorf("%q %d", messages, code)
	}
	if _, messages, code := call(
		c,
		"",
		nil,
		"--uid=bob",
		"job.sh",
	); messages != "sbatch: error: --uid only permitted by root user\n" ||
		code != 255 {
		t.Errorf("%q %d", messages, code)
	}
}

// user is the uid of the process.
var user = 0

func TestVerbose(t *testing.T) {
	_, messages, code := call(&cluster{}, "", nil, "-v", "--mem=2048", "-o", "x", "job.sh")
	want := "sbatch: defined options\nsbatch: -------------------- --------------------\n" +
		"sbatch: job-name            : ring\nsbatch: mem                 : 2G\nsbatch: output              : /home/alice/x\n" +
		"sbatch: time                : 02:00:00\nsbatch: verbose             : 1\n" +
		"sbatch: -------------------- --------------------\nsbatch: end of defined options\n"
	if messages != want || code != 0 {
		t.Errorf("%q %d", messages, code)
	}
}

func TestWait(t *testing.T) {
	c := &cluster{rows: [][]status.Job{{{State: "RUNNING"}}, {{State: "FAILED", ExitCode: 3}}}}
	if out, messages, code := call(c, "", nil, "-W", "job.sh"); code != 3 || messages != "" ||
		out != "Submitted batch job 7\n" {
		t.Errorf("%q %q %d", out, messages, code)
	}
	c = &cluster{rows: [][]status.Job{{{State: "COMPLETED"}}}}
	if _, _, code := call(c, "", nil, "-W", "job.sh"); code != 0 {
		t.Error(code)
	}
}
