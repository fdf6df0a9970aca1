package translate

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// longScript has 60 lines and the directives of typical scripts.
var longScript = []byte(
	"#!/bin/bash\n#SBATCH --job-name=md # run 7\n#SBATCH --output=logs/%x-%j.out\n#SBATCH --time=1-12:00:00\n" +
		"#SBATCH --partition=compute,long\n#SBATCH --nodes=4\n#SBATCH --ntasks-per-node=8\n" +
		"#SBATCH --cpus-per-task=4\n#SBATCH --mem=64G\n#SBATCH --gres=gpu:a100:4\n#SBATCH --account=chem\n" +
		"#SBATCH --constraint=\"a&b\"\n#SBATCH --exclude=n[001-016]\n" + strings.Repeat("srun ./step --and --more\n", 47),
)

func input() Input {
	return Input{
		Args: []string{"-t", "10", "job.sh"}, Env: []string{"HOME=/home/alice", "PATH=/bin", "USER=alice"},
		Script: longScript, ScriptName: "job.sh", ScriptPath: "/w/job.sh", Dir: "/w", Hostname: "login",
		Now: time.Unix(1800000000, 0).UTC(), Umask: -1,
	}
}

func TestLongScript(t *testing.T) {
	s, err := Sbatch(input())
	if err != nil {
		t.Fatal(err)
	}
	j := s.Job
	if j.Name != "md" || j.Time.Limit != 10 || j.Shape.MinNodes != 4 || *j.Shape.MemPerNode != 65536 || len(j.Placement.Exclude) != 16 ||
		!slices.Equal(j.Partitions, []string{"compute", "long"}) ||
		j.Placement.Constraint != "a&b" ||
		j.Shape.GRES[0].Count != 4 {
		t.Errorf("%+v", j)
	}
	if len(s.Warnings) != 0 || string(s.Script) != string(longScript) {
		t.Errorf("warnings %q", s.Warnings)
	}
}

func TestForeignDirectives(t *testing.T) {
	in := input()
	in.Script = []byte("#!/bin/sh\n#PBS -N x\n")
	s, err := Sbatch(in)
	if err != nil || len(s.Warnings) != 1 {
		t.Fatalf("%v %v", s, err)
	}
	in.Args = []string{"--ignore-pbs", "job.sh"}
	if s, err = Sbatch(in); err != nil || len(s.Warnings) != 0 {
		t.Fatalf("%v %v", s.Warnings, err)
	}
}

func TestHeterogeneousJobs(t *testing.T) {
	in := input()
	in.ScriptName = "job.sh"
	in.Script = []byte(
		"#!/bin/sh\n#SBATCH -N1 -J one\n#SBATCH hetjob\n#SBATCH -N2 -J two\n#SBATCH packjob -x\n#SBATCH -n3\n",
	)
	in.Args = []string{"-n4", ":", "-n5", "job.sh", ":", "x"}
	s, err := Sbatch(in)
	if err != nil || len(s.Components) != 2 || !slices.Equal(s.Warnings, []string{
		"warning: line 5: the words after packjob are ignored",
		`Warning: the "packjob" component separator is being deprecated. Please, use "hetjob" instead.`}) {
		t.Fatalf("%+v %v", s, err)
	}
	a, b, c := &s.Job, &s.Components[0], &s.Components[1]
	if a.Name != "one" || a.Shape.MinNodes != 1 || a.Shape.Tasks != 4 || a.Het.Offset != 0 || a.Het.Size != 3 ||
		!slices.Equal(a.Batch.Args, []string{":", "x"}) {
		t.Errorf("%+v", a)
	}
	if b.Name != "two" || b.Shape.MinNodes != 2 || b.Shape.Tasks != 5 || b.Het.Offset != 1 || b.Het.Size != 3 {
		t.Errorf("%+v", b)
	}
	// The name and the last part of the command line apply to further components.
	if c.Name != "two" || c.Shape.Tasks != 5 || c.Het.Offset != 2 ||
		c.Batch.SubmitLine != "sbatch -n4 : -n5 job.sh : x" {
		t.Errorf("%+v", c)
	}
	in.Args = []string{"--array=1-3", ":", "-n5", "job.sh"}
	if _, err := Sbatch(in); err == nil || !strings.Contains(err.Error(), "Invalid job array specification") {
		t.Errorf("an array of heterogeneous jobs: %v", err)
	}
	in = input()
	in.Args = []string{"-n1", ":", "-n2", "--wrap=true"}
	in.Script = nil
	if s, err = Sbatch(
		in,
	); err != nil || len(s.Components) != 1 || !strings.Contains(string(s.Script), "true") ||
		s.Job.Name != "wrap" {
		t.Errorf("%+v %v", s, err)
	}
}

// TestImageHint checks that only an image name with an unquoted # gets a hint.
func TestImageHint(t *testing.T) {
	for line, want := range map[string]bool{
		"--container-image=nvcr.io#nvidia/pytorch:24.01": true, "--container-image docker://a#b": true,
		`--container-image="a#b"`: false,
		"--container-image=a # b": false, "--comment=a#b": false,
	} {
		s, err := Sbatch(Input{
			Script: []byte("#!/bin/sh\n#SBATCH " + line + "\ntrue\n"), ScriptName: "s.sh", ScriptPath: "/s.sh",
			Dir: "/", Umask: -1,
		})
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		hinted := len(s.Warnings) == 1 && strings.HasPrefix(s.Warnings[0], "berth: hint: line 2: ")
		if hinted != want || !want && len(s.Warnings) != 0 {
			t.Errorf("%s: warnings %q", line, s.Warnings)
		}
	}
}

// TestUmaskAndSwitchesOfTheEnvironment checks variables that belong to no option.
func TestUmaskAndSwitchesOfTheEnvironment(t *testing.T) {
	in := Input{
		Args: []string{"--switches=1", "--wrap=true"}, Env: []string{"SLURM_UMASK=0077", "SBATCH_WAIT4SWITCH=2:00"},
		Dir: "/", Umask: 0o22,
	}
	s, err := Sbatch(in)
	if err != nil || s.Job.Batch.Umask != 0o77+1 || s.Job.Placement.SwitchesWait != 120 {
		t.Errorf("%+v, %v", s, err)
	}
	in.Args[0] = "--switches=1@3:00"
	in.Env[0] = "SLURM_UMASK=x"
	if s, err = Sbatch(in); err != nil || s.Job.Batch.Umask != 0o22+1 || s.Job.Placement.SwitchesWait != 180 {
		t.Errorf("%+v, %v", s, err)
	}
}

// FuzzSbatch parses one option from each source.
func FuzzSbatch(f *testing.F) {
	f.Add("--time=5", "-N2 --mem=1G", "1:00")
	f.Add("--ex", "hetjob", "")
	f.Fuzz(func(t *testing.T, arg, directive, limit string) {
		if strings.ContainsAny(directive, "\n") {
			return
		}
		in := input()
		in.Args = []string{arg, "job.sh"}
		in.Env = append(in.Env, "SBATCH_TIMELIMIT="+limit)
		in.Script = []byte("#!/bin/sh\n#SBATCH " + directive + "\n")
		s, err := Sbatch(in)
		if (s == nil) == (err == nil) {
			t.Fatalf("%v, %v", s, err)
		}
	})
}

func BenchmarkSbatch(b *testing.B) {
	in := input()
	b.ReportAllocs()
	before := cpuTime(b)
	for b.Loop() {
		if _, err := Sbatch(in); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N), "cpu-ns/op")
}

// cpuTime returns the CPU time of this process in nanoseconds, which does not
// depend on the load of the machine.
func cpuTime(b *testing.B) int64 {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Skip(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// BenchmarkSbatchBig has an array of 10,000 tasks and a list of 4,096 nodes.
func BenchmarkSbatchBig(b *testing.B) {
	for name, args := range map[string][]string{
		"array 1000": {"-a", "0-999"}, "array 10000": {"-a", "0-9999"}, "scattered array 10000": {"-a", "0-19999:2"},
		"nodes 512": {"-x", "n[0001-0512]"}, "nodes 4096": {"-x", "n[0001-4096]"},
		"nodes 32768": {"-x", "n[00001-32768]"},
	} {
		b.Run(name, func(b *testing.B) {
			in := input()
			in.Args = append(args, "job.sh")
			before := cpuTime(b)
			for b.Loop() {
				if _, err := Sbatch(in); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N), "cpu-ns/op")
		})
	}
}
