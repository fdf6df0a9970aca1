package option_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/option"
)

// TestOrderOfVariables: of several variables with wrong values, each command of 22.05.8 reports
// the first of these lists, and ignores the others.
func TestOrderOfVariables(t *testing.T) {
	for c, list := range map[option.Command]string{
		option.Sbatch: "ACCTG_FREQ CORE_SPEC CPU_FREQ_REQ CPUS_PER_GPU DEBUG=-1 DELAY_BOOT DISTRIBUTION EXCLUSIVE " +
			"GET_USER_ENV GRES_FLAGS GPU_BIND GPU_FREQ MEM_BIND MEM_PER_CPU MEM_PER_GPU MEM_PER_NODE NO_KILL OPEN_MODE " +
			"PROFILE REQ_SWITCH SIGNAL THREAD_SPEC THREADS_PER_CORE TIMELIMIT WAIT_ALL_NODES",
		option.Salloc: "ACCTG_FREQ CORE_SPEC CPU_FREQ_REQ CPUS_PER_GPU DEBUG=-1 DELAY_BOOT EXCLUSIVE GPU_BIND GPU_FREQ " +
			"GRES_FLAGS IMMEDIATE KILL_CMD MEM_BIND MEM_PER_CPU MEM_PER_GPU MEM_PER_NODE NO_KILL PROFILE " +
			"REQ_SWITCH SIGNAL THREAD_SPEC THREADS_PER_CORE TIMELIMIT WAIT_ALL_NODES",
		option.Srun: "ACCTG_FREQ CORE_SPEC CPUS_PER_TASK CPU_FREQ_REQ CPUS_PER_GPU DELAY_BOOT DISTRIBUTION " +
			"EXCLUSIVE GPU_BIND GPU_FREQ GRES_FLAGS JOB_ID JOB_NUM_NODES KILL_BAD_EXIT MEM_BIND MEM_PER_CPU " +
			"MEM_PER_GPU MEM_PER_NODE NCORES_PER_SOCKET NO_KILL NPROCS NTASKS=y NSOCKETS_PER_NODE NTASKS_PER_NODE " +
			"NTASKS_PER_GPU NTASKS_PER_TRES OPEN_MODE PROFILE REQ_SWITCH RESV_PORTS SEND_LIBS SIGNAL THREAD_SPEC " +
			"THREADS THREADS_PER_CORE TIMELIMIT WAIT DEBUG=-1",
	} {
		entries := strings.Fields(list)
		for i, entry := range entries {
			prefix := map[option.Command]string{option.Sbatch: "SBATCH_", option.Salloc: "SALLOC_"}[c]
			switch {
			case entry == "CPUS_PER_TASK":
				prefix = "SRUN_"
			case prefix == "":
				prefix = "SLURM_"
			}
			if !strings.Contains(entry, "=") {
				entry += "=x"
			}
			entries[i] = prefix + entry
		}
		for i := range entries {
			alone := firstError(c, entries[i:i+1])
			later := slices.Clone(entries[i:])
			slices.Reverse(later)
			if got := firstError(c, later); got != alone {
				t.Errorf("%v: before %s: %s, want %s", c, entries[i], got, alone)
			}
		}
	}
}

// TestVerbosityOfVariable: SLURM_DEBUG is a number; a text that is none counts as 0.
func TestVerbosityOfVariable(t *testing.T) {
	for v, want := range map[string]int{"3": 3, " 2": 2, "x": 0, "1x": 0, "": 0} {
		p, err := option.Parse(option.Srun, []string{"job"}, []string{"SLURM_DEBUG=" + v})
		if err != nil || p.Client.Verbose != want {
			t.Errorf("%q: %v %+v", v, err, p)
		}
	}
	for _, v := range []string{"-1", "9999999999999999999999"} {
		if got := firstError(option.Srun, []string{"SLURM_DEBUG=" + v}); !strings.Contains(got, "for --verbose.") {
			t.Errorf("%q: %s", v, got)
		}
	}
}

// firstError returns the message of a command about its environment; of options that it only
// ignores, nothing.
func firstError(c option.Command, environ []string) string {
	_, err := option.Parse(c, []string{"job"}, environ)
	if e, ok := errors.AsType[*slurmerr.Error](err); ok {
		return e.Message
	}
	return ""
}

// TestUnreadableExclusions: the controller reads the excluded nodes after the partition, so a
// command sends a name that no node has.
func TestUnreadableExclusions(t *testing.T) {
	for _, list := range []string{"n[1", "n[3-1]", "n[x]"} {
		p, err := option.Parse(option.Sbatch, []string{"-x", list, "job"}, nil)
		if err == nil {
			err = p.Verify()
		}
		if err != nil || !slices.Equal(p.Job.Placement.Exclude, []string{"]"}) {
			t.Errorf("%s: %v %v", list, err, p.Job.Placement.Exclude)
		}
	}
}

// TestSpecializationOfVariables: a variable about specialized cores or threads gives way to the
// command line, and a script to a variable (22.05.8).
func TestSpecializationOfVariables(t *testing.T) {
	const cores, threads = "error: Ignoring -S since", "error: Ignoring --thread-spec since"
	for _, c := range []struct {
		env, args, script, warning, err string
	}{
		{"SBATCH_CORE_SPEC=1", "--thread-spec=1", "", threads, ""},
		{"SBATCH_THREAD_SPEC=1", "-S1", "", cores, ""},
		{"SBATCH_THREAD_SPEC=1", "", "-S1", threads, ""},
		{"SBATCH_CORE_SPEC=1", "", "--thread-spec=1", cores, ""},
		{"", "--thread-spec=1", "-S1", "", "-S/--core-spec and"},
		{"SBATCH_THREAD_SPEC=1 SBATCH_CORE_SPEC=1", "", "", "", "Both --core-spec and --thread-spec set"},
	} {
		p := option.New(option.Sbatch)
		_, err := p.Directives(strings.Fields(c.script))
		if err == nil {
			err = p.Environment(strings.Fields(c.env))
		}
		if err == nil {
			err = p.CommandLine(append(strings.Fields(c.args), "job"))
		}
		if err == nil {
			err = p.Verify()
		}
		switch {
		case err == nil && len(p.Warnings) == 1 && strings.HasPrefix(p.Warnings[0], c.warning) && c.err == "":
		case err != nil && c.err != "" && strings.HasPrefix(err.Error(), c.err):
		default:
			t.Errorf("%+v: %v %q", c, err, p.Warnings)
		}
	}
}

// TestMemoryOfVariables: the names in the error are those of variables if all of them are (22.05.8).
func TestMemoryOfVariables(t *testing.T) {
	for args, want := range map[string]string{
		"":                        "SLURM_MEM_PER_CPU, SLURM_MEM_PER_GPU, and SLURM_MEM_PER_NODE are mutually exclusive.",
		"--mem=3":                 "",
		"--mem=3 --mem-per-cpu=1": "--mem, --mem-per-cpu, and --mem-per-gpu are mutually exclusive.",
	} {
		p, err := option.Parse(option.Salloc, append(strings.Fields(args), "job"),
			[]string{"SALLOC_MEM_PER_CPU=0", "SALLOC_MEM_PER_GPU=100"})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := p.Verify(); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %s, want %s", args, got, want)
		}
	}
}
