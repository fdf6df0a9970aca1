package e2e

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth/internal/eventually"
)

// federation is three clusters of one machine, and a home directory whose commands know all of
// them: the first is the present one.
type federation struct {
	t        *testing.T
	clusters []*cluster
	env      []string
	dir      string // of the kubeconfigs
}

func startFederation(t *testing.T) *federation {
	t.Helper()
	home := t.TempDir()
	f := &federation{t: t, dir: filepath.Join(home, ".config", "berth", "clusters")}
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"one", "two", "three"} {
		conf := filepath.Join(home, name+".conf")
		text := "ClusterName=" + name + "\nNodeName=n1 CPUs=2 RealMemory=400\nPartitionName=main Nodes=ALL Default=YES MaxTime=60\n"
		if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c := start(t, "--slurm-conf", conf)
		f.clusters = append(f.clusters, c)
		admin, _ := callerOf(t, filepath.Join(c.state, "kubeconfig"))
		patch := object{"spec": object{"federation": object{"name": "earth", "id": i + 1}}}
		code, answer := admin.do(t, http.MethodPatch, "/apis/berth.hpc/v1alpha1/clusters/berth", patch,
			"Content-Type", "application/merge-patch+json")
		if code != http.StatusOK {
			t.Fatalf("cluster %s: %d %s", name, code, answer)
		}
		if i > 0 {
			f.register(name, f.kubeconfig(i))
		}
	}
	f.env = append(f.clusters[0].environ(home), "HOME="+home, "XDG_CONFIG_HOME=")
	return f
}

func (f *federation) kubeconfig(i int) string {
	text, err := os.ReadFile(filepath.Join(f.clusters[i].state, "kubeconfig"))
	if err != nil {
		f.t.Fatal(err)
	}
	return string(text)
}

// register makes -M know a cluster.
func (f *federation) register(name, kubeconfig string) {
	if err := os.WriteFile(filepath.Join(f.dir, name+".kubeconfig"), []byte(kubeconfig), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// away registers a cluster with another address and without a socket.
func (f *federation) away(name, address string) {
	text := regexp.MustCompile(`server: .*`).ReplaceAllString(f.kubeconfig(1), `server: "https://`+address+`"`)
	f.register(name, regexp.MustCompile(`api\.sock`).ReplaceAllString(text, "none.sock"))
}

func (f *federation) run(line string) string {
	out, err := command(f.env, line+"; echo rc $?")
	if err != nil {
		f.t.Fatalf("%s: %v", line, err)
	}
	return out + "\n"
}

func (f *federation) check(line, want string) {
	f.t.Helper()
	if got := f.run(line); !regexp.MustCompile(`\A(?s:` + want + `)\z`).MatchString(got) {
		f.t.Errorf("%s:\n%swant\n%s", line, got, want)
	}
}

// TestFederation: three clusters of a federation. Ids of jobs name the cluster and do not clash,
// squeue --federation makes one list, and clusters that refuse connections, never answer or lose
// all packets are named and cost a second.
func TestFederation(t *testing.T) {
	t.Parallel()
	f := startFederation(t)
	check := f.check
	// The scheduler reads the change of the Cluster asynchronously.
	eventually.Holds(t, "the clusters are members", func() bool {
		return strings.Count(f.run("sacctmgr -n list federation"), "ACTIVE") == 3
	})
	check("sbatch -H -o /dev/null --wrap true", "Submitted batch job 67108865\nrc 0\n")
	check("sbatch -M two -o /dev/null -t 10 --exclusive --wrap 'sleep 600'",
		"Submitted batch job 134217729 on cluster two\nrc 0\n")
	check("sbatch -M three -H -o /dev/null --wrap true", "Submitted batch job 201326593 on cluster three\nrc 0\n")
	check("squeue -h -o %i", "67108865\nrc 0\n")
	const ids, all = "squeue --federation -h -S i -o %i", "67108865\n134217729\n201326593\n"
	check(ids, all+"rc 0\n")
	check("squeue --sibling -h -S i -o %i", all+"rc 0\n")
	check("SQUEUE_FEDERATION=1 squeue -h -S i -o %i", all+"rc 0\n")
	check("squeue --federation --local -h -o %i", "67108865\nrc 0\n")
	check("squeue --federation -M three -h -o %i", "201326593\nrc 0\n")
	check("squeue --federation -h -S i -O cluster:8,originraw:3", "one     1  \ntwo     2  \nthree   3  \nrc 0\n")
	check("squeue --federation -h -j 201326593 -O cluster:8", "three   \nrc 0\n")
	check("squeue --federation | wc -l", "4\nrc 0\n")
	eventually.Holds(t, "the job runs", func() bool {
		return strings.Contains(f.run("squeue --federation -h -s -o %i"), "134217729.batch")
	})
	check("sinfo --federation -h -o %P", "main\\*\nmain\\*\nmain\\*\nrc 0\n")
	check("sbatch -M two -o /dev/null -t 10 --wrap true", "Submitted batch job 134217730 on cluster two\nrc 0\n")
	eventually.Holds(t, "it waits", func() bool { return strings.Contains(f.run("sprio -M two -h -o %i"), "134217730") })
	check("sprio --federation -h -o %i", "134217730\nrc 0\n")
	check("scancel -M two 134217730", "rc 0\n")
	check("sbatch -M three -o /dev/null --wrap true", "Submitted batch job 201326594 on cluster three\nrc 0\n")
	check("sbatch -o /dev/null --wrap true", "Submitted batch job 67108866\nrc 0\n")
	const records = "67108866 +\n201326594 +\n134217729 +\n134217730 +\nrc 0\n"
	check("sacct --federation -n -X -o jobid", records)
	check("sacct -M all -n -X -o jobid", records)
	check("sacctmgr -n -P list federation", "earth\\|one\\|1\\|\\|ACTIVE\nearth\\|three\\|3\\|\\|ACTIVE\nearth\\|two\\|2\\|\\|ACTIVE\nrc 0\n")
	check("sacctmgr -n -P list cluster format=cluster,controlport", "one\\|0\nthree\\|0\ntwo\\|0\nrc 0\n")
	check("sacctmgr -n -P list cluster two format=cluster", "two\nrc 0\n")
	check("scontrol show federation", "Federation: earth\nSelf:       one:[^\n]* ID:1 [^\n]*\nSibling:    three:[^\n]* ID:3 [^\n]*\n"+
		"Sibling:    two:[^\n]* ID:2 [^\n]*\nrc 0\n")
	check("sbatch -M one,two,three -H -o /dev/null --wrap true", "Submitted batch job 67108867 on cluster one\nrc 0\n")
	check("scancel -M one 67108867", "rc 0\n")

	eventually.Holds(t, "the short jobs end", func() bool { return f.run(ids) == all+"rc 0\n" })
	f.away("refuses", "127.0.0.1:1")
	f.away("hangs", neverAnswers(t))
	check(ids, "squeue: error: cluster hangs does not answer: [^\n]*\nsqueue: error: cluster refuses does not answer: [^\n]*\n"+all+"rc 1\n")
	check("sacctmgr -n -P list cluster format=cluster,controlport", ".*cluster hangs does not answer.*one\\|0\nhangs\\|0\nrefuses\\|0\nthree\\|0\ntwo\\|0\nrc 0\n")
	check("sbatch -M hangs,three -H -o /dev/null --wrap true",
		"sbatch: error: cluster hangs does not answer: [^\n]*\nSubmitted batch job 201326595 on cluster three\nrc 0\n")
	check("scancel -M three 201326595", "rc 0\n")
	for _, name := range []string{"hangs", "refuses"} {
		if err := os.Remove(filepath.Join(f.dir, name+".kubeconfig")); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("lost packets", f.lostPackets)
}

// neverAnswers returns the address of a server whose kernel accepts connections, and that never
// sends anything.
func neverAnswers(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}

// lostPackets runs commands in a network namespace whose only route loses every packet. The
// clusters are reached through their sockets.
func (f *federation) lostPackets(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root for a network namespace")
	}
	ip, err := exec.LookPath("ip")
	if err != nil {
		t.Skip("needs ip, of the package iproute2")
	}
	g := *f
	g.t = t
	g.away("lost", "192.0.2.7:6443")
	within := func(line string) string {
		return fmt.Sprintf("unshare -n sh -c '%[1]s link add lost0 type veth peer name lost1; "+
			"%[1]s address add 192.0.2.1/24 dev lost0; %[1]s link set lost0 up; %[1]s link set lost1 up; "+
			"%[1]s neighbour add 192.0.2.7 lladdr 02:00:00:00:00:07 dev lost0; %[2]s'", ip, line)
	}
	began := time.Now()
	g.check(within("squeue --federation -h -S i -o %i"), "squeue: error: cluster lost does not answer: "+
		"[^\n]*(timeout|deadline)[^\n]*\n67108865\n134217729\n201326593\nrc 1\n")
	t.Logf("with a cluster that loses packets: %v", time.Since(began))
	g.check(within("squeue -M lost,two -h -o %i"), "squeue: error: cluster lost does not answer: [^\n]*\n134217729\nrc 1\n")
	g.check(within("sinfo -M lost,two -h -o %P"), "sinfo: error: cluster lost does not answer: [^\n]*\nmain\\*\nrc 1\n")
}
