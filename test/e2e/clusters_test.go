package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth/internal/eventually"
)

// TestSeveralClusters: commands with -M on two clusters, one that does not answer, and one
// that does not exist.
func TestSeveralClusters(t *testing.T) {
	t.Parallel()
	conf := func(name, text string) string {
		path := filepath.Join(t.TempDir(), "slurm.conf")
		if err := os.WriteFile(path, []byte("ClusterName="+name+"\n"+text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const nodes = "NodeName=n1 CPUs=2 RealMemory=400\nPartitionName=main Nodes=ALL Default=YES MaxTime=60\n"
	one := start(t, "--slurm-conf", conf("one", nodes))
	two := start(t, "--slurm-conf", conf("two", "FirstJobId=5000\n"+nodes))
	home := t.TempDir()
	clusters := filepath.Join(home, ".config", "berth", "clusters")
	if err := os.MkdirAll(clusters, 0o700); err != nil {
		t.Fatal(err)
	}
	second, err := os.ReadFile(filepath.Join(two.state, "kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	away := regexp.MustCompile(`server: .*`).ReplaceAllString(string(second), `server: "https://127.0.0.1:1"`)
	away = strings.ReplaceAll(away, "api.sock", "none.sock")
	for name, text := range map[string]string{"two": string(second), "away": away} {
		if err := os.WriteFile(filepath.Join(clusters, name+".kubeconfig"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	env := append(one.environ(home), "HOME="+home, "XDG_CONFIG_HOME=")
	run := func(line string) string {
		out, err := command(env, line+"; echo rc $?")
		if err != nil {
			t.Fatal(err)
		}
		return out + "\n"
	}
	check := func(line, want string) {
		t.Helper()
		if got := run(line); !regexp.MustCompile(`\A(?s:` + want + `)\z`).MatchString(got) {
			t.Errorf("%s:\n%swant\n%s", line, got, want)
		}
	}
	const heading = ` +JOBID .*?\n`
	check("sbatch -M two -o /dev/null -t 10 --exclusive --wrap 'sleep 600'", "Submitted batch job 5000 on cluster two\nrc 0\n")
	check("squeue -M two,one", "CLUSTER: two\n"+heading+" +5000 .*?\n\nCLUSTER: one\n"+heading+"rc 0\n")
	check("squeue --clusters=all -h -o %i", "squeue: error: cluster away does not answer: [^\n]*\n5000\nrc 1\n")
	check("scontrol -M two show job 5000 -o | grep -o 'JobId=5000 '", "JobId=5000 \nrc 0\n")
	check("scontrol -M one,two show job", "scontrol: (fatal: )?Only one cluster can be used at a time with scontrol\nrc 1\n")
	eventually.Holds(t, "the job runs", func() bool { return strings.Contains(run("squeue -M two -h -o %T"), "RUNNING") })
	// The second cluster is full, so the job starts earlier on the first one.
	check("sbatch -M two,one -o /dev/null -t 10 --wrap true", "Submitted batch job 1 on cluster one\nrc 0\n")
	check("echo '#!/bin/sh' | sbatch -M two,one -o /dev/null -t 10", "Submitted batch job 2 on cluster one\nrc 0\n")
	check("sbatch -M away,one -o /dev/null -t 10 -H --wrap true", "sbatch: error: cluster away does not answer: [^\n]*\nSubmitted batch job 3 on cluster one\nrc 0\n")
	check("squeue -M one,two -i 1", "squeue: fatal: Only one cluster can be used at a time with --iterate\nrc 1\n")
	check("srun -Q -M one -n1 echo here", "here\nrc 0\n")
	check("srun -M nope true", "srun: error: No cluster 'nope' known by database\\.\nsrun: error: 'nope' can't be reached now,[^\n]*\nrc 1\n")
	check("squeue -M one,nope -h -o %i", "squeue: error: No cluster 'nope' known by database\\.\n.*rc 0\n")
	check("squeue -M nope,nicht", "squeue: error: No cluster 'nope' known by database\\.\nsqueue: error: No cluster 'nicht' known by database\\.\n"+
		"squeue: error: 'nope,nicht' can't be reached now, or it is an invalid entry for --cluster\\..*rc 1\n")
	// As in a job that was submitted with -M one: another name is not taken for that.
	check("BERTH_CLUSTER=one squeue -M nope", "squeue: error: No cluster 'nope' known by database\\.\n.*rc 1\n")
	check("sshare -M one,two -n -U -o account", "CLUSTER: one\n.*CLUSTER: two\n.*rc 0\n")
	check("SLURM_CLUSTERS=two squeue -h -o %i", "5000\nrc 0\n")
	check("sdiag -M one,nope | head -2 | tail -1", "sdiag: error: No cluster 'nope' known by database\\.\nsdiag output at .*rc 0\n")
	check("sacct -M nope,nicht -n -X", "rc 0\n")
	began := time.Now()
	check("squeue -M away,two -h -o %i", "squeue: error: cluster away does not answer: [^\n]*\n5000\nrc 1\n")
	t.Logf("with a cluster that refuses connections: %v", time.Since(began))
	check("scancel -M one,two 5000", ".*rc 0\n")
	eventually.Holds(t, "the job is cancelled", func() bool { return strings.Contains(run("sacct -M two -n -X -j 5000 -o state"), "CANCELLED") })
	check("sacct -M one,two -X -o jobid", "JobID +\n-+ \n1 +\n2 +\n4 +\n5000 +\nrc 0\n")
	script := func(names string) string {
		return "printf '#!/bin/sh\\n#SBATCH -M " + names + "\\n#SBATCH -o /dev/null -t 10\\n' > s.sh; "
	}
	check(script("two")+"sbatch -H s.sh", "Submitted batch job 5001 on cluster two\nrc 0\n")
	check(script("two")+"sbatch -H < s.sh", "Submitted batch job 5002 on cluster two\nrc 0\n")
	check(script("one,two")+"sbatch -H s.sh", "Submitted batch job 5 on cluster one\nrc 0\n")
	check(script("one,two")+"sbatch -H < s.sh", "Submitted batch job 6 on cluster one\nrc 0\n")
	check(script("one")+"sbatch -H s.sh", "Submitted batch job 7 on cluster one\nrc 0\n")
	check(script("two")+"sbatch -H -M one s.sh", "Submitted batch job 8 on cluster one\nrc 0\n")
	check(script("nope")+"sbatch -H s.sh", "sbatch: error: No cluster 'nope' known by database\\.\n.*rc 1\n")
	check("squeue -M one,two --version", "slurm [^\n]*\nrc 0\n")
}
