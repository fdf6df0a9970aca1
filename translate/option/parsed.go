package option

import (
	"time"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/value"
)

// Source says where an option came from; a higher one wins.
type Source uint8

// The sources, lowest first (sbatch(1), INPUT ENVIRONMENT VARIABLES).
const (
	FromDefault Source = iota
	FromScript
	FromEnv
	FromCommandLine
)

// Given is the text of an option that was given, and where it came from.
type Given struct {
	Value string
	From  Source
}

// Parsed is everything that options said. Job is incomplete until the caller
// has added what options do not say (work directory, script, ...).
type Parsed struct {
	Command Command
	Job     job.Job
	Client  Client
	Step    Step

	// Args is what follows the options on the command line.
	Args []string
	// Given holds the options that were given, by long name.
	Given map[string]Given
	// Warnings are lines to show behind the command's name: what is accepted
	// and not done, and what was put right.
	Warnings []string

	// Lenient takes the values of refused options too. Tests compare them with
	// Slurm's before the rest of Berth can honour them.
	Lenient bool

	from      Source
	said      []said
	insideJob bool
	// switchesWait is what the environment says for --switches without a time, in
	// seconds (SBATCH_WAIT4SWITCH and its like).
	switchesWait int32
	// late holds refusals that in Slurm come after the reading of all options
	// (Verify).
	late     []refusal
	badHosts string // what is wrong in a step with a list of nodes; empty: nothing
	// shortened is a node list that Verify cut.
	shortened string
	// gres holds what each option added to Job.Shape.GRES.
	gres map[string][]job.GRES
}

// Has tells whether the option called name was given anywhere.
func (p *Parsed) Has(name string) bool {
	_, ok := p.Given[name]
	return ok
}

// Client is what concerns the command itself and not the job.
type Client struct {
	Help, Usage, Version bool

	Parsable bool // sbatch: only the id
	Wait     bool // sbatch: until the job ends
	TestOnly bool
	Quiet    int
	Verbose  int

	Wrap       *string // sbatch --wrap
	ExportFile string
	UID, GID   *int64 // --uid and --gid, once somebody looked them up
	AsUser     string // --uid as given
	AsGroup    string // --gid as given
	// Print is text that an option asks for instead of a job (--hint=help), and
	// PrintCode the exit code after it, which in Slurm may be that of an error.
	Print      string
	PrintCode  int
	NodeFile   string
	GetUserEnv bool
	IgnorePBS  bool
	Clusters   string
	// Immediate: give up when the job cannot start within that many seconds;
	// nil: wait; 0: at once.
	Immediate *int32

	// Begin and Deadline as they were written; ResolveTimes reads them.
	Begin, Deadline string

	Bell        string // salloc: "", "always", "never"
	NoShell     bool   // salloc
	KillCommand *int32 // salloc -K: signal number
}

// Step is what only srun takes; the rest of a step's shape is in Parsed.Job
// (Shape, Placement, Time.Limit, Batch.Input, Output, Error, WorkDir).
type Step struct {
	JobID int64 // --jobid, SLURM_JOB_ID

	Label         bool
	Unbuffered    bool
	KillOnBadExit *bool
	Wait          *int32 // seconds after the first task's end; 0: for ever
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
	Bcast    *string // nil: not given; empty: to the default place
	Compress bool    // what --bcast copies
	// SendLibs has --bcast copy the program's shared objects, but for those in
	// the folders of BcastExclude.
	SendLibs     bool
	BcastExclude string
	Threads      int32 // launch fan-out
	Prolog       string
	Epilog       string
	TaskPro      string // --task-prolog
	TaskEpi      string // --task-epilog
	Chdir        string
	Ports        *int32 // to reserve; 0: as many as tasks on a node, and one; nil: none
	OpenMode     string

	PreserveEnv     bool
	WaitForChildren bool
	OOMKillStep     *bool
	TaskSharing     bool // tasks see all GPUs of the step (--gres-flags)

	QuitOnInterrupt bool
	DisableStatus   bool
}

// ResolveTimes turns --begin and --deadline, which may be relative, into
// instants, and stores them in the job. The location of now is the user's time
// zone.
func (p *Parsed) ResolveTimes(now time.Time) error {
	for _, t := range []struct {
		name, text string
		to         *int64
	}{{"begin", p.Client.Begin, &p.Job.Time.Begin}, {"deadline", p.Client.Deadline, &p.Job.Time.Deadline}} {
		if t.text == "" {
			continue
		}
		at, err := value.Instant(t.text, now)
		if err != nil {
			return instantError(t.name, t.text, err)
		}
		*t.to = at.Unix()
	}
	if t := &p.Job.Time; p.Client.Begin != "" && p.Client.Deadline != "" && t.Begin > t.Deadline {
		return slurmerr.New(slurmerr.Refused, "Incompatible begin and deadline time specification")
	}
	return nil
}

// Apply gives the option called name of command c the value v in j, as scontrol
// update does. It checks the form of the value and nothing else.
func Apply(c Command, j *job.Job, name, v string) error {
	o := Lookup(c, name)
	if o == nil {
		return value.ErrInvalid
	}
	p := &Parsed{Command: c, Job: *j, Given: map[string]Given{}, Lenient: true}
	if err := o.set(p, v, true); err != nil {
		return err
	}
	if err := p.refused(false); err != nil {
		return err
	}
	*j = p.Job
	return nil
}
