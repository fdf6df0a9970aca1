package agent_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/job"
)

// example runs a script of examples/ in a job of three nodes: as root with
// host names as pods have them, and in any case with addresses for names.
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

// need skips a test where a program of another package is not there; CI has
// them all.
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
	example(t, "ring/ring.sh", ringProgram(t))
}

// ringProgram builds the ring, or takes the one of make build where this user
// cannot build (no Go, or no module cache).
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
	need(t, "mpirun.openmpi", "openmpi-bin python3-mpi4py")
	if out, err := exec.Command("/usr/bin/python3", "-c", "import mpi4py").CombinedOutput(); err != nil {
		missing(t, fmt.Sprintf("no mpi4py here: apt-get install python3-mpi4py\n%s", out))
	}
	example(t, "mpi/openmpi.sh", ringPy(t))
}

func TestMPICH(t *testing.T) {
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
