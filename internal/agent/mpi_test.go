package agent_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/internal/exectest"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/job"
)

// example runs a script of examples/ in a job with three nodes: with addresses as node
// names and, as root, with host names as in pods.
func example(t *testing.T, script, ring string) {
	t.Run("addresses", func(t *testing.T) { exampleIn(t, script, ring, false) })
	t.Run("names", func(t *testing.T) { exampleIn(t, script, ring, true) })
}

func exampleIn(t *testing.T, script, ring string, named bool) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../examples", script))
	if err != nil {
		t.Fatal(err)
	}
	g := start(t, shape{
		cpus: []int32{1, 1, 1}, script: string(text), named: named,
		env: []string{"RING=" + ring, "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"},
		job: func(j *job.Job) { j.Shape.MinNodes, j.Shape.Tasks, j.Shape.TasksPerNode = 3, 3, 1 },
		with: func(g *gang) {
			for i := range g.base.Hosts {
				g.base.Hosts[i].Tasks = 1
				if !named {
					g.base.Hosts[i].Name = g.ip(i)
				}
			}
		},
	})
	r, out := g.finish()
	for i := range g.base.Hosts {
		if line := fmt.Sprintf("rank %d of 3 on n%d\n", i, i+1); named && !strings.Contains(out, line) {
			t.Errorf("no %q in output", line)
		}
	}
	if r.Kind != wire.ReportEnded || r.Status != 0 || !strings.Contains(out, "ring of 3 ok\n") {
		t.Errorf("report %+v, output:\n%s\nlogs:\n%s", r, out, g.logs)
	}
}

// need skips a test if a program of another package is not installed; CI has them all.
func need(t *testing.T, program, pkg string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		missing(t, fmt.Sprintf("no %s here: apt-get install %s", program, pkg))
	}
}

func missing(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal(what)
	}
	t.Skip(what)
}

func TestRingBySrun(t *testing.T) {
	t.Parallel()
	example(t, "ring/ring.sh", ringProgram(t))
}

// ringProgram builds the ring. A user without Go or a module cache uses the one that make
// build has built.
func ringProgram(t *testing.T) string {
	t.Helper()
	ring := filepath.Join(t.TempDir(), "ring")
	out, err := exec.Command("go", "build", "-o", ring, "../../examples/ring").CombinedOutput()
	if err == nil {
		return ring
	}
	built, absErr := filepath.Abs("../../bin/ring")
	if absErr != nil {
		t.Fatal(absErr)
	}
	if _, statErr := os.Stat(built); statErr != nil {
		t.Fatalf("%s is not there (make build), and go build fails: %v\n%s", built, err, out)
	}
	return built
}

func TestOpenMPI(t *testing.T) {
	t.Parallel()
	need(t, "mpirun.openmpi", "openmpi-bin python3-mpi4py")
	if out, err := exec.Command("/usr/bin/python3", "-c", "import mpi4py").CombinedOutput(); err != nil {
		missing(t, fmt.Sprintf("no mpi4py here: apt-get install python3-mpi4py\n%s", out))
	}
	example(t, "mpi/openmpi.sh", ringPy(t))
}

// needPMIx skips a test if the PMIx server was not built; CI has it.
func needPMIx(t *testing.T) {
	t.Helper()
	need(t, "mpirun.openmpi", "openmpi-bin python3-mpi4py")
	if _, err := os.Stat(filepath.Join(binDir, wire.PMIxServer)); err != nil {
		missing(t, "no PMIx server: apt-get install libpmix-dev pkg-config gcc")
	}
}

func TestPMIx(t *testing.T) {
	t.Parallel()
	needPMIx(t)
	example(t, "mpi/pmix.sh", ringPy(t))
}

// mpiStep runs an srun in a job with nodes of two CPUs, whose tasks find each other by name
// or address.
func mpiStep(t *testing.T, nodes int, script string, with func(*gang)) (wire.Report, string) {
	t.Helper()
	s := shape{
		script: script, env: []string{"OMPI_MCA_btl=self,tcp", "RING=" + ringPy(t)},
		with: func(g *gang) {
			for i := range g.base.Hosts {
				g.base.Hosts[i].Name = g.ip(i)
			}
			if with != nil {
				with(g)
			}
		},
	}
	for range nodes {
		s.cpus = append(s.cpus, 2)
	}
	g := start(t, s)
	r, out := g.finish()
	for i, dir := range g.tmp {
		if left, err := filepath.Glob(filepath.Join(dir, "*", "pmix-*")); err != nil || len(left) > 0 {
			t.Errorf("node %d keeps %v, %v", i, left, err)
		}
	}
	return r, out
}

// TestPMIxForms checks tasks that share nodes in another order, tasks that request data from
// each other in place of a fence, and parallel steps.
func TestPMIxForms(t *testing.T) {
	t.Parallel()
	needPMIx(t)
	// Tasks that request data run on separate nodes: OpenPMIx 4.2.2 sometimes reports
	// that a task on the same node has no data, if it has put none yet.
	script := `#!/bin/bash
srun --mpi=pmix -n6 -m cyclic python3 "$RING" | grep -q "ring of 6 ok" && echo "ok cyclic"
OMPI_MCA_pmix_base_async_modex=1 OMPI_MCA_pmix_base_collect_data=0 srun --mpi=pmix -n3 python3 "$RING" | grep -q "ring of 3 ok" && echo "ok asked"
for i in 1 2; do
	srun --mpi=pmix_v4 --overlap -n2 -N2 python3 "$RING" | grep -q "ring of 2 ok" && echo "ok at once" &
done
wait
`
	_, out := mpiStep(t, 3, script, nil)
	for _, want := range []string{"ok cyclic\n", "ok asked\n", "ok at once\nok at once\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in output:\n%s", want, out)
		}
	}
}

// TestPMIxRefused checks that without the server, or without its library, srun reports an
// error and no task starts.
func TestPMIxRefused(t *testing.T) {
	t.Parallel()
	const script = "#!/bin/sh\n$SRUN --mpi=pmix sh -c 'echo ran' 2>&1\necho code $?\n$SRUN --mpi=list 2>&1\n"
	for name, tt := range map[string]struct{ server, want string }{
		"absent": {"", "srun: error: cannot find mpi plugin for mpi/pmix: pmix-server: No such file or directory\n"},
		"no library": {
			"#!/bin/sh\necho 'error while loading shared libraries: libpmix.so.2' >&2\nexit 127\n",
			"srun: error: cannot find mpi plugin for mpi/pmix: error while loading shared libraries: libpmix.so.2\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			bin := t.TempDir()
			if tt.server != "" {
				exectest.Write(t, filepath.Join(bin, wire.PMIxServer), tt.server)
			}
			g := start(t, shape{
				cpus: []int32{1, 1}, script: script, env: []string{"SRUN=" + filepath.Join(binDir, "srun")},
				with: func(g *gang) { g.bin = bin },
			})
			_, out := g.finish()
			want := tt.want + "srun: error: Invalid MPI type 'pmix', --mpi=list for acceptable types\ncode 1\n" +
				"MPI plugin types are...\n\tnone\n\tpmi2\n"
			if out != want {
				t.Errorf("output:\n%s\nwant:\n%s", out, want)
			}
		})
	}
}

// TestPMIxEnds checks that a task that aborts, and the end of a server, end the step.
func TestPMIxEnds(t *testing.T) {
	t.Parallel()
	needPMIx(t)
	for name, tt := range map[string]struct{ program, want string }{
		"abort": {"comm.Barrier()\nif comm.rank == 1: comm.Abort(7)\n", "aborts the step"},
		"server killed": {
			"comm.Barrier()\nimport os\nif comm.rank == 1: os.system('kill -9 $(pgrep -P ' + str(os.getppid()) + ' -f pmix-server)')\n",
			"error: mpi/pmix: the server on",
		},
	} {
		t.Run(name, func(t *testing.T) {
			program := "from mpi4py import MPI\nimport time\ncomm = MPI.COMM_WORLD\n" + tt.program + "time.sleep(600)\n"
			script := "#!/bin/sh\ncat > p.py <<'END'\n" + program + "END\nsrun --mpi=pmix -N2 -n2 python3 p.py 2>&1\necho code $?\n"
			_, out := mpiStep(t, 2, script, nil)
			if !strings.Contains(out, tt.want) || !strings.Contains(out, "\ncode ") ||
				strings.Contains(out, "\ncode 0\n") {
				t.Errorf("no %q in output:\n%s", tt.want, out)
			}
		})
	}
}

func TestMPICH(t *testing.T) {
	t.Parallel()
	need(t, "mpirun.mpich", "mpich")
	example(t, "mpi/mpich.sh", ringPy(t))
}

func ringPy(t *testing.T) string {
	t.Helper()
	p, err := filepath.Abs("../../examples/mpi/ring.py")
	if err != nil {
		t.Fatal(err)
	}
	return p
}
