package option_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/option"
)

// defined is a call of sbatch, srun or salloc of Slurm 22.05.8 with -v, and the parsed
// options (testdata/record).
type defined struct {
	Command string
	Args    []string
	Env     []string
	Exit    int
	Before  string
	Options map[string]string
}

func (d defined) name() string {
	return strings.Join(slices.Concat(d.Env, []string{d.Command}, d.Args), " ")
}

// definedDifferences are calls with an intentionally different result, and the reason. A key
// is a prefix of an argument or variable, for all commands.
var definedDifferences = map[string]string{
	"--cpu-bind=":             "Slurm shows the list alone; we show the value as it was given",
	"SLURM_CPU_BIND=":         "the same",
	"--het-group=":            "Slurm refuses --test-only with --het-group",
	"--uid=nosuch":            "the command looks up users in the cluster",
	"--gid=nosuch":            "the same",
	"--gid=12345":             "the same",
	"--uid=refuser":           "the same",
	"--gid=refuser":           "the same",
	"--mpi=x":                 "srun checks the type of MPI",
	"--multi-prog":            "the file is read by srun",
	"--debugger-test":         "refused",
	"--wrap=true":             "the recorder passes a script as well",
	"-M":                      "clusters are looked up",
	"--cpu-freq=Conservative": "Slurm allows governors of slurm.conf",
	"--nodefile":              "the file is read by the command",
	"-F":                      "the same",
	"-Z":                      "refused",
	"--container=":            "salloc of Slurm needs interactive steps",
	"SALLOC_CONTAINER=":       "the same",
	"--bbf=":                  "refused",
	"SBATCH_DEBUG=":           "in Slurm it overrides -v",
	"SLURM_DEBUG=":            "an empty level",
	"SALLOC_DEBUG=":           "the same",
	"SBATCH_REQ_SWITCH=":      "Slurm shows it without a name",
	"SALLOC_REQ_SWITCH=":      "the same",
	"SLURM_REQ_SWITCH=":       "the same",
	"SLURM_TRES_PER_TASK=":    "later releases read it",
	"SLURM_JOB_ID=":           "the recorder's job",
	"SALLOC_PARTITION=":       "the recorder requests a partition",
	"-":                       "no script of that name",
	"--job-name":              "its value is the name of the script",
	"-b":                      "now",
	"--priority=TOP":          "Slurm shows a negative number",
	"--gres=help":             "it only prints a text",
	"--mpi=list":              "srun's",
}

func TestDefined(t *testing.T) {
	f, err := os.Open("../testdata/defined.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // read only
	n := 0
	for lines := bufio.NewScanner(f); lines.Scan(); n++ {
		var d defined
		if err := json.Unmarshal(lines.Bytes(), &d); err != nil {
			t.Fatal(err)
		}
		if why := expected(d); why != "" {
			continue
		}
		t.Run(d.name(), func(t *testing.T) { replayDefined(t, d) })
	}
	if n < 2000 {
		t.Errorf("only %d recordings", n)
	}
}

func expected(d defined) string {
	for _, word := range slices.Concat(d.Args, d.Env) {
		for key, why := range definedDifferences {
			if why != "" && strings.HasPrefix(word, key) && (len(key) > 2 && key != "--job-name" || word == key) {
				return why
			}
		}
	}
	return ""
}

var commands = map[string]option.Command{"sbatch": option.Sbatch, "srun": option.Srun, "salloc": option.Salloc}

func replayDefined(t *testing.T, d defined) {
	p := option.New(commands[d.Command])
	p.Lenient = true
	err := parse(p, d)
	if d.Exit != 0 {
		refusal(t, d, err)
		return
	}
	if err != nil && slurmerr.ExitCode(err) != 1 { // with 1 the controller refuses, after the options were printed
		t.Fatalf("refused: %v; want %v", err, d.Options)
	}
	got := map[string]string{}
	for _, s := range p.Defined("/tmp/vectors") {
		got[s.Name] = s.Value
	}
	for name, v := range map[string]string{"verbose": "1"} {
		if got[name] == v {
			delete(got, name)
		}
	}
	want := maps.Clone(d.Options)
	for name, v := range want {
		want[name] = strings.TrimSuffix(v, "0?")
		if want[name] != v {
			want[name] += "0"
		}
	}
	if !maps.Equal(got, want) && (len(got) > 0 || len(want) > 0) {
		t.Errorf("%v\nwant %v", got, want)
	}
}

// parse parses options as the commands do.
func parse(p *option.Parsed, d defined) error {
	if err := p.Environment(d.Env); err != nil {
		return err
	}
	program := map[string]string{"sbatch": "s.sh", "srun": "true", "salloc": "true"}[d.Command]
	if err := p.CommandLine(slices.Concat([]string{"-v"}, d.Args, []string{program})); err != nil {
		return err
	}
	if err := p.ResolveTimes(time.Unix(1800000000, 0).UTC()); err != nil {
		return err
	}
	return p.Verify()
}

// refusal compares text and exit code.
func refusal(t *testing.T, d defined, err error) {
	if err == nil {
		t.Fatalf("accepted; want %s", d.Before)
	}
	var e *slurmerr.Error
	if !errors.As(err, &e) {
		t.Fatalf("%T is not a *slurmerr.Error", err)
	}
	e.Hints = nil
	var b strings.Builder
	slurmerr.Print(&b, d.Command, err)
	if b.String() != d.Before || slurmerr.ExitCode(err) != d.Exit {
		t.Errorf("exit %d:\n%swant %d:\n%s", slurmerr.ExitCode(err), b.String(), d.Exit, d.Before)
	}
}
