package option_test

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/option"
)

// TestValuesOfOptionsWithoutEffect compares the errors about values of options without
// effect with those of Slurm 22.05.8. An empty error means that the value is accepted.
func TestValuesOfOptionsWithoutEffect(t *testing.T) {
	for line, want := range map[string]string{
		"sbatch --acctg-freq=5x": "", "sbatch --acctg-freq=task=1.5": "", "sbatch --acctg-freq=TASK=5": "",
		"sbatch --acctg-freq=,": "", "sbatch --acctg-freq=-5": "",
		"sbatch --acctg-freq=task=+5": "", "sbatch --acctg-freq=3,energy=5": "", "sbatch --acctg-freq=xtask=3": "",
		"srun --acctg-freq=": "", "sbatch --acctg-freq=-12": "",
		"sbatch --acctg-freq=-x":        "Invalid --acctg-freq specification: -x",
		"sbatch --acctg-freq=-1":        "Invalid --acctg-freq specification: -1",
		"sbatch --acctg-freq=task=":     "Invalid --acctg-freq specification: task=",
		"sbatch --acctg-freq=5,x,y":     "Invalid --acctg-freq specification: x\nInvalid --acctg-freq specification: y",
		"sbatch --acctg-freq=task":      "Invalid --acctg-freq specification: task",
		"srun --acctg-freq=foo=1":       "Invalid --acctg-freq specification: foo=1",
		"srun --acctg-freq=task=-1":     "Invalid --acctg-freq specification: task=-1",
		"srun --accel-bind=g":           "",
		"srun --accel-bind=vn":          "",
		"srun --accel-bind=none":        "",
		"srun --accel-bind=":            "Invalid --accel-bind specification",
		"srun --accel-bind=x":           "Invalid --accel-bind specification",
		"srun --accel-bind=G":           "Invalid --accel-bind specification",
		"srun --accel-bind=m":           "Invalid --accel-bind specification",
		"srun --threads=60":             "",
		"srun --threads=0":              `Invalid numeric value "0" for --threads.`,
		"srun --threads=4k":             `Invalid numeric value "4k" for --threads.`,
		"srun --msg-timeout=5s":         `Invalid numeric value "5s" for --msg-timeout.`,
		"srun --msg-timeout=0":          `Invalid numeric value "0" for --msg-timeout.`,
		"srun --msg-timeout=5":          "",
		"srun --interactive":            "",
		"sbatch --signal=R:USR1":        "",
		"sbatch --delay-boot=5":         "",
		"sbatch --delay-boot=-1":        "",
		"sbatch --delay-boot=1:30":      "",
		"sbatch --delay-boot=":          "Invalid --delay-boot specification",
		"sbatch --delay-boot=abc":       "Invalid --delay-boot specification",
		"sbatch --delay-boot=-1:30":     "Invalid --delay-boot specification",
		"sbatch --delay-boot=5s":        "Invalid --delay-boot specification",
		"sbatch --core-spec=-1":         `Invalid numeric value "-1" for --core-spec.`,
		"srun --container-entrypoint=x": "option '--container-entrypoint' doesn't allow an argument",
		"srun --container-mount-home=x": "option '--container-mount-home' doesn't allow an argument",
		"sbatch --requeue=x":            "option '--requeue' doesn't allow an argument",
		"srun --interactive=1":          "option '--interactive' doesn't allow an argument",
	} {
		name, arg, _ := strings.Cut(line, " ")
		command := map[string]option.Command{"sbatch": option.Sbatch, "srun": option.Srun}[name]
		p, err := option.Parse(command, []string{arg, "true"}, nil)
		var got string
		if err != nil {
			got = strings.TrimPrefix(text(err), name+": ")
		} else if len(p.Warnings) == 0 && !strings.Contains(line, "--delay-boot") && !strings.HasSuffix(arg, "=") {
			// Slurm has none for --delay-boot either, and an empty value requests nothing.
			t.Errorf("%s: no warning that it has no effect", line)
		}
		if got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

// text returns the message of err without hints.
func text(err error) string {
	if e, ok := err.(*slurmerr.Error); ok { //nolint:errorlint // as it comes
		return e.Message
	}
	return err.Error()
}

func TestManyThreads(t *testing.T) {
	p, err := option.Parse(option.Srun, []string{"--threads=61", "true"}, nil)
	if err != nil ||
		!strings.Contains(
			strings.Join(p.Warnings, "\n"),
			"error: Thread value --threads=61 exceeds recommended limit of 60",
		) {
		t.Errorf("%v", err)
	}
}

// TestGPUTypes checks requests for GPUs with and without a type.
func TestGPUTypes(t *testing.T) {
	const mixed = "Invalid GRES specification (with and without type identification)"
	for line, want := range map[string]string{
		"--gpus=tesla:2 --gpus-per-task=1 -n2":            mixed,
		"--gres=gpu:tesla:1,gpu:1":                        mixed,
		"--gres=gpu:a100:1 --gpus=1":                      mixed,
		"--gpus=tesla:2 --gpus-per-task=tesla:1 -n2":      "",
		"--gpus=0 --gres=gpu:tesla:1":                     "",
		"-G1 --cpus-per-gpu=2 -c1":                        "--cpus-per-gpu is mutually exclusive with --cpus-per-task\nInvalid generic resource (gres) specification",
		"--gpus=2 --gpus=":                                "",
		"--gpus-per-node= -L= -L ,":                       "",
		"--gpus=a100:":                                    "Invalid generic resource (gres) specification",
		"--gpus-per-node=:2":                              "Invalid generic resource (gres) specification",
		"--gres=gpu:tesla:1,license:1 --ntasks-per-gpu=1": "",
		"--mem-per-gpu=10":                                "Requested mem_per_tres=gres:gpu:10 but did not request any GPU.\nInvalid generic resource (gres) specification",
		"--mem-per-gpu=10 --gres=gpu:1":                   "",
		"--gpus-per-socket=1":                             "--gpus-per-socket option requires --sockets-per-node specification\nInvalid generic resource (gres) specification",
		"--gpus-per-socket=1 --sockets-per-node=1":        "",
	} {
		p, err := option.Parse(option.Sbatch, strings.Fields(line), nil)
		if err == nil {
			err = p.Verify()
		}
		got := ""
		if err != nil {
			got = text(err)
		}
		if got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

// TestStepsOfJobs checks the warnings about options of a job that have no effect on a step,
// and node names in files.
func TestStepsOfJobs(t *testing.T) {
	const no = "Unable to create step for job 7: "
	files := func(path string) ([]byte, error) {
		switch path {
		case "/hosts":
			return []byte("n1\nn2 n3\n"), nil
		case "/empty":
			return []byte("\n"), nil
		}
		return nil, fs.ErrNotExist
	}
	for line, want := range map[string]string{
		"--dependency=foo:1":      "",
		"--licenses=foo:x":        "",
		"-x n[1]]":                no + "Invalid node name specified",
		"-w n[1]]":                no + "Requested node configuration is not available",
		"-w /nosuch":              "slurm_allocate_resources error opening file /nosuch, No such file or directory",
		"-x /nosuch":              "slurm_allocate_resources error opening file /nosuch, No such file or directory",
		"-F /nosuch":              "slurm_allocate_resources error opening file /nosuch, No such file or directory\nInvalid --nodefile node file",
		"-x /empty":               "Hostlist is empty!",
		"-F /empty":               "Hostlist is empty!\nInvalid --nodefile node file",
		"--nodefile=":             "Invalid --nodefile node file",
		"--nodelist=":             "Hostlist is empty!  Can not run job.",
		"--begin=now":             "prints error: --begin is ignored because nodes are already allocated.",
		"--gpus=tesla:1":          "Invalid GRES specification (with and without type identification)",
		"-F /hosts":               "on [n1 n2 n3] not []",
		"-w /hosts -x /hosts":     "on [n1 n2 n3] not [n1 n2 n3]",
		"--constraint=fast":       "prints warning: --constraint has no effect: a step does not choose among the nodes of its job by their features",
		"--compress= --bcast=/x":  "",
		"--cpu-freq=low-foo":      "unrecognized --cpu-freq argument \"foo\"\nInvalid --cpu-freq argument",
		"--bcast-exclude --label": "",
	} {
		p, err := option.Parse(
			option.Srun,
			append(strings.Fields(line), "true"),
			[]string{"SLURM_JOB_ID=7", "SLURM_GPUS_PER_NODE=2"},
		)
		if err == nil {
			err = p.ReadNodes(files)
		}
		if err == nil {
			err = p.VerifyStep()
		}
		got := ""
		switch {
		case err != nil:
			got = text(err)
		case len(p.Warnings) > 0:
			got = "prints " + strings.Join(p.Warnings, "\n")
		case len(p.Job.Placement.NodeList) > 0:
			got = fmt.Sprint("on ", p.Job.Placement.NodeList, " not ", p.Job.Placement.Exclude)
		}
		if got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

// TestEmptyLists checks options whose list has no elements, as with an unset variable of a
// script, against the results of Slurm 22.05.8.
func TestEmptyLists(t *testing.T) {
	for _, c := range []struct {
		env, args []string
		err       string
	}{
		{nil, []string{"--gpus=2", "--gpus="}, ""},
		{nil, []string{"--gpus-per-task=1", "--gpus-per-task=,"}, ""},
		{nil, []string{"-L", "matlab", "-L", ","}, ""},
		{nil, []string{"--gres="}, "Batch job submission failed: Invalid Trackable RESource (TRES) specification"},
		{nil, []string{"--gres=gpu:1", "--gres="},
			"Batch job submission failed: Invalid Trackable RESource (TRES) specification"},
		{[]string{"SBATCH_REQ_SWITCH=2@10"}, nil, `Invalid numeric value "2@10" for --switches.`},
		{[]string{"SBATCH_REQ_SWITCH=2"}, []string{"--switches=1@5"}, ""},
	} {
		p, err := option.Parse(option.Sbatch, append(c.args, "job.sh"), c.env)
		if err == nil {
			err = p.Verify()
		}
		switch {
		case err == nil && c.err == "":
			if len(p.Job.Shape.GRES)+len(p.Job.Licenses) > 0 || p.Job.Options["gpus"] != "" {
				t.Errorf("%q: %v, %v, %v", c.args, p.Job.Shape.GRES, p.Job.Licenses, p.Job.Options)
			}
		case err == nil || text(err) != c.err:
			t.Errorf("%q %q: %v, want %q", c.env, c.args, err, c.err)
		}
	}
}
