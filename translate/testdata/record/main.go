// Command record records calls of sbatch and their results on a cluster with Slurm 22.05
// (nodes n1 to n4, partitions debug and batch, two GPUs on n1 and n2, users in the
// database). It writes them to ../*.jsonl, which the tests replay without Slurm. It
// submits held jobs and cancels them; -env also runs small jobs.
//
//	cd translate/testdata && go run ./record [-env]
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// directory is the working directory of the calls; it is part of the results.
const directory = "/tmp/vectors"

// vector is one call and its result.
type vector struct {
	Name   string            `json:"name"`
	Args   []string          `json:"args"`
	Env    []string          `json:"env,omitempty"`
	Script string            `json:"script"`
	Exit   int               `json:"exit"`
	Stdout string            `json:"stdout,omitempty"`
	Stderr string            `json:"stderr,omitempty"`
	Job    map[string]string `json:"job,omitempty"` // scontrol show job
	// Components are the further components of a heterogeneous job.
	Components []map[string]string `json:"components,omitempty"`
}

func main() {
	withEnv := flag.Bool("env", false, "record environments of running jobs as well")
	from := flag.Int("from", 0, "with -env: record those from this number on, into env-more.jsonl")
	only := flag.Bool("defined", false, "record only defined options")
	more := flag.Bool("more", false, "make only the calls that are not in sbatch.jsonl")
	flag.Parse()
	log.SetFlags(0)
	check(os.MkdirAll(directory, 0o777))
	if *from > 0 {
		recordMore(*from)
		return
	}
	var out []any
	if !*more {
		for _, c := range definedCases() {
			out = append(out, callDefined(c))
		}
		write("defined.jsonl", out)
	}
	if *only {
		return
	}
	out = nil
	known := map[string]vector{}
	if *more {
		known = recorded("sbatch.jsonl")
	}
	for _, c := range cases() {
		if v, ok := known[c.Name]; ok {
			out = append(out, v)
			continue
		}
		out = append(out, call(c))
	}
	write("sbatch.jsonl", out)
	if *withEnv {
		out = nil
		for _, c := range environments() {
			out = append(out, runJob(c))
		}
		write("env.jsonl", out)
	}
}

func recordMore(from int) {
	var out []any
	for _, c := range environments()[from:] {
		out = append(out, runJob(c))
	}
	write("env-more.jsonl", out)
}

// recorded returns the calls in a file, by name.
func recorded(name string) map[string]vector {
	data, err := os.ReadFile(name)
	check(err)
	out := map[string]vector{}
	for line := range bytes.Lines(data) {
		var v vector
		check(json.Unmarshal(line, &v))
		out[v.Name] = v
	}
	return out
}

func write(name string, list []any) {
	var b bytes.Buffer
	for _, v := range list {
		line, err := json.Marshal(v)
		check(err)
		b.Write(append(line, '\n'))
	}
	check(os.WriteFile(name, b.Bytes(), 0o644))
	log.Printf("%s: %d vectors", name, len(list))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

var submitted = regexp.MustCompile(`Submitted batch job (\d+)`)

// kept are the fields of scontrol show job that depend only on the call.
var kept = map[string]bool{"JobName": true, "Nice": true, "Requeue": true, "TimeLimit": true, "Partition": true, "ReqNodeList": true,
	"ExcNodeList": true, "NumNodes": true, "NumTasks": true, "CPUs/Task": true, "MinMemoryNode": true,
	"MinMemoryCPU": true, "Features": true,
	"OverSubscribe": true, "Command": true, "WorkDir": true, "StdErr": true, "StdIn": true, "StdOut": true,
	"Comment": true, "Dependency": true,
	"ArrayTaskId": true, "EligibleTime": true, "SubmitTime": true, "Deadline": true, "MinCPUsNode": true, "MinTmpDiskNode": true}

// call makes the call, with --hold, and cancels the job.
func call(v vector) vector {
	check(os.WriteFile(filepath.Join(directory, "s.sh"), []byte(v.Script), 0o755))
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sbatch", v.Args...)
	cmd.Dir = directory
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=/root", "TZ=UTC"}, v.Env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if exit, ok := err.(*exec.ExitError); ok {
		v.Exit = exit.ExitCode()
	} else {
		check(err)
	}
	v.Stdout, v.Stderr = stdout.String(), stderr.String()
	if m := submitted.FindStringSubmatch(v.Stdout); m != nil {
		all := show(m[1])
		v.Job, v.Components = all[0], all[1:]
		check(exec.Command("scancel", m[1]).Run())
		v.Stdout = strings.ReplaceAll(v.Stdout, m[1], "N")
		for k, text := range v.Job {
			v.Job[k] = strings.ReplaceAll(text, m[1], "N")
		}
		for _, c := range v.Components {
			delete(c, "StdOut") // they contain other job ids
			delete(c, "StdErr")
		}
	}
	return v
}

// show returns the fields of a job, and of its components.
func show(id string) (all []map[string]string) {
	data, err := exec.Command("scontrol", "show", "job", id).Output()
	check(err)
	for part := range strings.SplitSeq(strings.TrimSpace(string(data)), "\n\n") {
		all = append(all, fields(part))
	}
	return all
}

// fields returns the fields of one job. The value of a field ends before the next key, so values
// may contain blanks.
func fields(text string) map[string]string {
	key := regexp.MustCompile(`(?:^|\s)([A-Z][A-Za-z_/:]*)=`)
	found := map[string]string{}
	at := key.FindAllStringSubmatchIndex(text, -1)
	for i, m := range at {
		end := len(text)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		if name := text[m[2]:m[3]]; kept[name] {
			found[name] = strings.TrimSpace(text[m[1]:end])
		}
	}
	return found
}

// envVector is a job that ran, and its environment.
type envVector struct {
	Args     []string   `json:"args"`
	StepArgs []string   `json:"stepArgs,omitempty"`
	Nodes    []string   `json:"nodes"` // scontrol show job -d: one line for each node or group of nodes
	Batch    []string   `json:"batch"`
	Tasks    [][]string `json:"tasks,omitempty"` // of srun, by task
}

const probe = `#!/bin/sh
scontrol show job -d $SLURM_JOB_ID | grep -E '^ *Nodes=' >$OUT.nodes
env | LC_ALL=C sort >$OUT.batch
[ -n "$STEP" ] && srun $STEP sh -c 'env | LC_ALL=C sort >$OUT.task.$SLURM_PROCID'
exit 0
`

func runJob(c envVector) envVector {
	base := filepath.Join(directory, "out")
	old, _ := filepath.Glob(base + ".*")
	for _, f := range old {
		check(os.Remove(f))
	}
	check(os.WriteFile(filepath.Join(directory, "probe.sh"), []byte(probe), 0o755))
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sbatch", append(append([]string{"-W", "-Q", "-t", "1", "-o", "/dev/null"}, c.Args...), "probe.sh")...)
	cmd.Dir = directory
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/root", "OUT=" + base, "STEP=" + strings.Join(c.StepArgs, " ")}
	if data, err := cmd.CombinedOutput(); err != nil {
		log.Fatalf("%v: %v: %s", c.Args, err, data)
	}
	c.Nodes, c.Batch = lines(base+".nodes"), lines(base+".batch")
	for i := 0; ; i++ {
		file := fmt.Sprintf("%s.task.%d", base, i)
		if _, err := os.Stat(file); err != nil {
			return c
		}
		c.Tasks = append(c.Tasks, lines(file))
	}
}

// unstable are variables that depend on the machine or the time.
var unstable = regexp.MustCompile(`^(PATH|HOME|SHELL|PWD|OLDPWD|SHLVL|_|OUT|STEP|LS_COLORS|SLURM_CONF|SLURM_WORKING_CLUSTER|SLURM_TASK_PID|SLURM_CLUSTER_NAME|` +
	`SLURM_SUBMIT_HOST|SLURM_SRUN_COMM_PORT|SLURM_STEP_LAUNCHER_PORT|SLURM_JOB_(U|G)ID|SLURM_JOB_USER)=`)

func lines(file string) []string {
	data, err := os.ReadFile(file)
	check(err)
	var out []string
	for l := range strings.SplitSeq(strings.TrimSpace(string(data)), "\n") {
		if !unstable.MatchString(l) {
			out = append(out, strings.TrimSpace(l))
		}
	}
	return out
}
