package option_test

import (
	"strings"
	"testing"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/option"
)

// TestRefusalsOfASlurm: what the commands of 22.05.8 print for options that contradict each
// other, with the errors about ignored options before.
func TestRefusalsOfASlurm(t *testing.T) {
	const gres = "Invalid generic resource (gres) specification\n"
	for line, want := range map[string]string{
		"sbatch --ntasks-per-tres=5 --ntasks-per-gpu=2": "sbatch: fatal: Inconsistent values set to " +
			"--ntasks-per-gpu=2 and --ntasks-per-tres=5 \n",
		"sbatch --ntasks-per-gpu=4 -M ref":         "sbatch: error: Batch job submission failed: " + gres,
		"sbatch --mem-per-gpu=1G -M ref":           "sbatch: error: Batch job submission failed: " + gres,
		"sbatch --test-only --gres=GPU=x:1 -M ref": "allocation failure: " + gres,
		"sbatch -G tesla:2,1 -N2-4":                "sbatch: error: Failed to validate job spec, --gpus < -N\nsbatch: error: " + gres,
		"sbatch -G tesla:2,1":                      "sbatch: error: Invalid GRES specification (with and without type identification)\n",
		"sbatch -p ,": "sbatch: error: invalid partition specified: (null)\n" +
			"sbatch: error: Batch job submission failed: Invalid partition name specified\n",
		"srun --test-only --partition=": "srun: error: invalid partition specified: (null)\n" +
			"allocation failure: Invalid partition name specified\n",
		"sbatch -p , -p main":       "",
		"sbatch -m plane=2 -N2":     "sbatch: error: Too few processes for the requested {plane,node} distribution\n",
		"sbatch -m plane=2 -N4 -n4": "sbatch: error: Too few processes for the requested {plane,node} distribution\n",
		"sbatch -m plane=2 -N2 -n4": "",
		"srun -m plane=2 -N2 -n2":   "",
		"salloc --power=x --sockets-per-node=0": "salloc: error: Ignoring unrecognized power option (x)\n" +
			"salloc: error: Invalid numeric value \"0\" for --sockets-per-node.\n",
		"sbatch --power=x --mem=abc": "sbatch: error: Ignoring unrecognized power option (x)\n" +
			"sbatch: error: Invalid --mem specification\n",
		"sbatch --power=x --switches=x@1": "sbatch: error: Ignoring unrecognized power option (x)\n" +
			"sbatch: error: Invalid numeric value \"x\" for --switches.\n",
		"sbatch -G tesla:2,1 -M ref": "sbatch: error: Batch job submission failed: " +
			"Invalid GRES specification (with and without type identification)\n",
		"sbatch -M ref --gpus-per-task=1 -w n[x]": "sbatch: error: _parse_single_range: Invalid range: `x'\n" +
			"sbatch: error: memory allocation failure\n",
		"srun -w n1 -w ,":      "srun: error: Unable to allocate resources: Node count specification invalid\n",
		"salloc -w ,":          "salloc: error: Job submit/allocate failed: Node count specification invalid\n",
		"sbatch -w ,":          "",
		"srun --send-libs=Y":   "",
		"srun --send-libs=n":   "",
		"srun --send-libs=yes": "",
		"srun --send-libs=ye":  "srun: error: Invalid --send-libs specification\n",
		// The words of --cpu-freq are recognized by their first letters.
		"sbatch --cpu-freq=hignowh":     "",
		"sbatch --cpu-freq=lox-medium1": "",
		"sbatch --cpu-freq=hx": "sbatch: error: unrecognized --cpu-freq argument \"hx\"\n" +
			"sbatch: error: Invalid --cpu-freq argument\n",
		"sbatch --cpu-freq=1000-2000:per": "sbatch: error: illegal governor: per on --cpu-freq\n" +
			"sbatch: error: Invalid --cpu-freq argument\n",
		"sbatch --switches=@":   "sbatch: error: Invalid numeric value \"\" for --switches.\n",
		"sbatch --switches=x@1": "sbatch: error: Invalid numeric value \"x\" for --switches.\n",
		// --cpu-bind is checked once all options are read, and before the hint.
		"srun --cpu-bind=x --relative=x": "srun: error: Invalid numeric value \"x\" for --relative.\n",
		"srun --cpu-bind=x --hint=x": "srun: error: unrecognized --cpu-bind argument \"x\"\n" +
			"srun: fatal: Failed to parse --cpu-bind= values.\n",
		"srun --cpu 4": "srun: option '--cpu' is ambiguous; possibilities: '--cpu-bind' '--cpu-freq' '--cpus-per-gpu' " +
			"'--cpus-per-task'\nTry \"srun --help\" for more information\n",
		"sbatch -L :1 --time-min=-1": "sbatch: error: Batch job submission failed: " +
			"Invalid time-min specification (exceeds job's time or other limits)\n",
		"sbatch -L :1 --time-min=10 -t5": "sbatch: error: Batch job submission failed: " +
			"Invalid time-min specification (exceeds job's time or other limits)\n",
		"sbatch -L :1 --time-min=5 -t10":            "sbatch: error: Batch job submission failed: Invalid license specification\n",
		"srun --compress=NONE --sockets-per-node=0": "srun: error: Invalid numeric value \"0\" for --sockets-per-node.\n",
		"srun --compress=x --sockets-per-node=0": "srun: error: Compression type 'x' unknown, " +
			"disabling compression support.\nsrun: error: Invalid numeric value \"0\" for --sockets-per-node.\n",
	} {
		words := strings.Fields(line)
		c := map[string]option.Command{"sbatch": option.Sbatch, "srun": option.Srun, "salloc": option.Salloc}[words[0]]
		p, err := option.Parse(c, append(words[1:], "job"), nil)
		if err == nil {
			err = p.Verify()
		}
		var b strings.Builder
		if err != nil {
			slurmerr.Print(&b, words[0], err)
		}
		if b.String() != want {
			t.Errorf("%s:\n%s\nwant\n%s", line, b.String(), want)
		}
	}
}

// TestRequestsOfASlurm: how options and their repetitions change the request.
func TestRequestsOfASlurm(t *testing.T) {
	parse := func(line string) *option.Parsed {
		p, err := option.Parse(option.Sbatch, append(strings.Fields(line), "job.sh"), nil)
		if err == nil {
			err = p.Verify()
		}
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		return p
	}
	// -B replaces what was given before it.
	s := parse("--threads-per-core=1 --sockets-per-node=4 -B*:2").Job.Shape
	if s.SocketsPerNode != 0 || s.CoresPerSocket != 2 || s.ThreadsPerCore != 0 {
		t.Errorf("-B: %+v", s)
	}
	// -B describes each of the nodes that are named.
	if s := parse("-B1:4:1 -w n1,n3").Job.Shape; s.Tasks != 8 {
		t.Errorf("-B of two nodes: %+v", s)
	}
	if s := parse("-B1:2 -w n1,n2,n3 -N3").Job.Shape; s.Tasks != 6 {
		t.Errorf("-B of three nodes: %+v", s)
	}
	// A job with both values has both flags, and is cancelled.
	p := parse("--kill-on-invalid-dep=yes --kill-on-invalid-dep=no")
	if !*p.Job.Batch.KillOnInvalidDep || p.Job.Options["kill-on-invalid-dep"] == "" {
		t.Errorf("both values: %+v", p.Job)
	}
	// A node that is named twice counts once.
	if p := parse("-w n1,n2,n1 -n2"); len(p.Job.Placement.NodeList) != 2 || p.Job.Shape.MaxNodes != 0 || len(p.Warnings) > 0 {
		t.Errorf("a node twice: %+v", p)
	}
	if p := parse("--delay-boot=INFINITE"); p.Job.Options["delay-boot"] != "-1" {
		t.Errorf("%v", p.Job.Options)
	}
	// A hint on the command line replaces the variable about threads.
	hinted, err := option.Parse(option.Sbatch, []string{"--hint=multithread", "job"}, []string{"SBATCH_THREADS_PER_CORE=2"})
	if err == nil {
		err = hinted.Verify()
	}
	if err != nil || hinted.Job.Shape.ThreadsPerCore != 0 || hinted.Job.Placement.Hint != "multithread" {
		t.Errorf("--hint: %v %+v", err, hinted.Job.Shape)
	}
	// Types of mail have an order of their own.
	types := parse("--mail-type=END --mail-type=all").Job.Mail.Types
	if got := strings.Join(types, ","); got != "INVALID_DEPEND,BEGIN,END,FAIL,REQUEUE,STAGE_OUT" {
		t.Errorf("--mail-type: %s", got)
	}
	// Options that exclude each other are found before those that the configuration does not allow.
	for _, args := range [][]string{{"--core-spec=1", "--thread-spec=1"},
		{"--core-spec=1", "--gpus-per-task=1", "--ntasks-per-gpu=1"}} {
		p, err := option.Parse(option.Sbatch, append(args, "job"), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Verify(); err == nil || len(p.Warnings) > 0 {
			t.Errorf("%q: %v %q", args, err, p.Warnings)
		}
	}
	// The configuration is checked once all options are read.
	if w := parse("--core-spec=1 --power=x").Warnings; !strings.Contains(w[len(w)-1], "Ignoring -S") {
		t.Errorf("%q", w)
	}
}
