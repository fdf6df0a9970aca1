package option

import (
	"time"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/value"
)

// Source is where an option came from; a higher one wins.
type Source uint8

// The sources, lowest first (sbatch(1), INPUT ENVIRONMENT VARIABLES).
const (
	FromDefault Source = iota
	FromScript
	FromEnv
	FromCommandLine
)

// Given is the value of an option as it was written, and where it came from.
type Given struct {
	Value string
	From  Source
}

// Parsed is the result of parsing options. Job is incomplete until the caller has
// added what does not come from options (work directory, script, ...).
type Parsed struct {
	Command Command
	Job     job.Job
	Client  Client
	Step    Step

	// Args are the operands: the words after the options.
	Args []string
	// Given holds the options that were given, by long name.
	Given map[string]Given
	// Warnings are lines to print after the command's name: options without
	// effect, and values that were corrected.
	Warnings []string

	// Lenient accepts refused options too, so that tests can compare their values
	// with Slurm's.
	Lenient bool
	// NotRoot refuses the options that only root may use.
	NotRoot bool
	// Preliminary does not expand the lists whose errors only Verify reports. It is for
	// a first pass over options that are parsed once more.
	Preliminary bool

	from      Source
	applied   []appliedOption
	insideJob bool
	jobNodes  string // of the job in which srun runs, folded; empty: none
	// switchesWait is the wait of --switches without a time, in seconds, from the
	// environment (SBATCH_WAIT4SWITCH and its equivalents).
	switchesWait int32
	badCPUBind   error // of the value of --cpu-bind

	// deferred are the refusals that Slurm reports after it has parsed all options
	// (Verify).
	deferred []refusal
	// badHosts is a step's error about an invalid node list; empty: none.
	badHosts string
	// shortened is the node list if Verify shortened it, folded.
	shortened string
	// gres holds what each option added to Job.Shape.GRES.
	gres map[string][]job.GRES
}

// Has reports whether the named option was given by any source.
func (p *Parsed) Has(name string) bool {
	_, ok := p.Given[name]
	return ok
}

// Client holds the options about the command itself, not the job.
type Client struct {
	Help, Usage, Version bool

	Parsable bool // sbatch: print only the id
	Wait     bool // sbatch: wait until the job has ended
	TestOnly bool
	Quiet    int
	Verbose  int

	Wrap       *string // sbatch --wrap
	ExportFile string
	UID, GID   *int64 // --uid and --gid, once they are resolved
	AsUser     string // --uid as given
	AsGroup    string // --gid as given
	// Print is a text that an option requests in place of a job (--hint=help), and
	// PrintCode the exit code after it, which may be that of an error as in Slurm.
	Print      string
	PrintCode  int
	NodeFile   string
	GetUserEnv bool
	IgnorePBS  bool
	Clusters   string
	// Immediate is the value of --immediate in seconds; nil: it was not given. See
	// StartWithin.
	Immediate *int32

	// Begin and Deadline as they were written; ResolveTimes parses them.
	Begin, Deadline string

	Bell        string // salloc: "", "always", "never"
	NoShell     bool   // salloc
	KillCommand *int32 // salloc -K: signal number
}

// Step holds the options that only srun has. The rest of a step's request is in
// Parsed.Job (Shape, Placement, Time.Limit, Batch.Input, Output, Error, WorkDir).
type Step struct {
	JobID int64 // --jobid, SLURM_JOB_ID

	Label         bool
	Unbuffered    bool
	KillOnBadExit *bool
	Wait          *int32 // seconds after the first task's end; 0: no limit
	PTY           bool
	MultiProg     bool
	Overlap       bool
	Exact         bool // --exact, --exclusive
	Whole         bool
	Interactive   bool
	Relative      *int32
	HetGroup      string

	MPI      string // --mpi; empty: the default
	CPUBind  string // --cpu-bind as given
	MemBind  string
	GPUBind  string
	Bcast    *string // nil: not given; empty: the default path
	Compress bool    // what --bcast copies
	// SendLibs makes --bcast copy the program's shared objects too, except those
	// in the directories of BcastExclude.
	SendLibs     bool
	BcastExclude string
	Threads      int32 // launch fan-out
	Prolog       string
	Epilog       string
	TaskPro      string // --task-prolog
	TaskEpi      string // --task-epilog
	Chdir        string
	// Ports is the number of ports to reserve; 0: one more than tasks on a node;
	// nil: none.
	Ports    *int32
	OpenMode string

	PreserveEnv     bool
	WaitForChildren bool
	OOMKillStep     *bool
	TaskSharing     bool // tasks see all GPUs of the step (--gres-flags)

	QuitOnInterrupt bool
	DisableStatus   bool
}

// ResolveTimes stores --begin and --deadline, which may be relative to now, in the
// job. The location of now is the user's time zone.
func (p *Parsed) ResolveTimes(now time.Time) error {
	for _, t := range []struct {
		name, text string
		to         *int64
	}{
		{"begin", p.Client.Begin, &p.Job.Time.Begin},
		{"deadline", p.Client.Deadline, &p.Job.Time.Deadline},
	} {
		if t.text == "" {
			continue
		}
		at, err := value.Instant(t.text, now)
		if err != nil {
			return instantError(t.name, t.text, err)
		}
		*t.to = at.Unix()
	}
	both := p.Client.Begin != "" && p.Client.Deadline != ""
	if both && p.Job.Time.Begin > p.Job.Time.Deadline {
		return slurmerr.New(slurmerr.Refused, "Incompatible begin and deadline time specification")
	}
	return nil
}

// Apply sets the named option of command c to v in j, as scontrol update does. It
// checks only the syntax of the value.
func Apply(c Command, j *job.Job, name, v string) error {
	o := Lookup(c, name)
	if o == nil {
		return value.ErrInvalid
	}
	p := &Parsed{Command: c, Job: *j, Given: map[string]Given{}, Lenient: true}
	if name == "mail-type" {
		p.Job.Mail.Types = nil // the option adds types, and an update replaces them
	}
	if err := o.set(p, v, true); err != nil {
		return err
	}
	if err := p.refused(false); err != nil {
		return err
	}
	*j = p.Job
	return nil
}
