// Package scontrol shows and changes the objects of the cluster: jobs, steps, nodes,
// partitions and reservations.
package scontrol

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/berth-hpc/berth/internal/build"
	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/internal/keyvalue"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/translate/option"
	"github.com/berth-hpc/berth/translate/status"
)

// Cluster is what scontrol needs of a cluster.
type Cluster interface {
	Jobs(ctx context.Context, f jobs.Filter) (*status.JobList, error)
	Steps(ctx context.Context, f jobs.StepFilter) (*status.StepList, error)
	Nodes(ctx context.Context) (*status.NodeList, error)
	Partitions(ctx context.Context) (*status.PartitionList, error)
	Reservations(ctx context.Context) (*status.ReservationList, error)
	Licenses(ctx context.Context) (*status.LicenseList, error)
	Topology(ctx context.Context) (*status.Topology, error)
	Associations(ctx context.Context) (*status.AcctState, error)
	Shares(ctx context.Context) (*status.ShareList, error)
	ClusterInfo(ctx context.Context) (map[string]any, error)
	Cluster(ctx context.Context, names []string) (string, error)
	Script(ctx context.Context, id string) ([]byte, error)
	Operate(ctx context.Context, op status.Operation) (*status.OperationResult, error)
	Watch(ctx context.Context, f jobs.Filter, each func(*status.JobEvent) error, lost func(error)) error
	Token(ctx context.Context, user string, seconds int64) (*status.Token, error)
	Server() string
}

// Options are the dependencies and the options of scontrol.
type Options struct {
	p       *stdio.Process
	connect func() (Cluster, error)

	oneLine  bool
	details  bool
	quiet    bool
	verbose  bool
	all      bool
	clusters []string
	quit     bool // "exit" or "quit" ends an interactive session
}

// New returns the command. connect is called by the verbs that need a cluster.
func New(p *stdio.Process, connect func() (Cluster, error)) *Options {
	return &Options{p: p, connect: connect}
}

// Run parses args and runs the command.
func (o *Options) Run(ctx context.Context, args []string) error {
	v, words, err := option.Scontrol.ParseAndReport(args, o.p.LookupEnv, o.p.Print, o.p.Warn)
	if v == nil || err != nil {
		return err
	}
	o.oneLine, o.quiet, o.all = v.Has("oneliner"), v.Has("quiet"), v.Has("all")
	o.details = v.Last("details", "hide") == "details" // as in Slurm, --hide ends both
	o.clusters, o.verbose = v.List("clusters"), v.Has("verbose")
	if err := o.checkClusters(ctx); err != nil {
		return err
	}
	if len(words) == 0 {
		return o.interactive(ctx)
	}
	return run(ctx, o, words)
}

func (o *Options) checkClusters(ctx context.Context) error {
	if len(o.clusters) == 0 {
		return nil
	}
	c, err := o.connect()
	if err == nil {
		_, err = c.Cluster(ctx, o.clusters)
	}
	return err
}

func (o *Options) version() error { return o.p.Print("slurm " + build.Slurm + "\n") }

func (o *Options) help() error { return o.p.Print(option.Scontrol.Help()) }

// keyword is the implementation of one of scontrol's commands (option.ScontrolVerbs
// describes it).
type keyword struct {
	name       string
	least      int // letters that are enough of an abbreviation
	args, most int // number of arguments; most -1: any
	run        func(ctx context.Context, o *Options, args []string) error
}

// keywords are in the order of the help text. They refer to functions that use
// Options only, so the table is built once.
var keywords []keyword

func init() {
	switchOn := func(set func(*Options)) func(context.Context, *Options, []string) error {
		return func(_ context.Context, o *Options, _ []string) error { set(o); return nil }
	}
	quit := switchOn(func(o *Options) { o.quit = true })
	keywords = []keyword{
		{"show", 3, 1, -1, show},
		{"update", 2, 0, -1, update},
		{"create", 2, 0, -1, create},
		{"delete", 1, 0, -1, remove},
		{"hold", 4, 1, -1, held(status.OpHold)},
		{"uhold", 2, 1, -1, held(status.OpUHold)},
		{"holdu", 5, 1, -1, held(status.OpUHold)},
		{"release", 3, 1, -1, held(status.OpRelease)},
		{"requeue", 3, 1, -1, plainly(status.OpRequeue)},
		{"requeuehold", 7, 1, -1, plainly(status.OpRequeueHold)},
		{"suspend", 2, 1, -1, plainly(status.OpSuspend)},
		{"resume", 3, 1, -1, plainly(status.OpResume)},
		{"token", 5, 0, -1, token},
		{"top", 1, 1, 1, plainly(status.OpTop)},
		{"notify", 1, 2, -1, notify},
		{"write", 1, 1, 3, write},
		{"wait_job", 1, 1, 1, waitJob},
		{"reboot", 3, 0, -1, reboot},
		{"cancel_reboot", 3, 0, 1, cancelReboot},
		{"completing", 2, 0, 0, completing},
		{"listpids", 1, 0, 2, listpids},
		{"pidinfo", 3, 1, 1, pidinfo},
		{"ping", 3, 0, 0, ping},
		{"reconfigure", 3, 0, -1, reconfigure},
		{"errnumstr", 2, 1, 1, errnumstr},
		{"cluster", 2, 0, 1, chooseCluster},
		{"details", 2, 0, 0, switchOn(func(o *Options) { o.details = true })},
		{"oneliner", 2, 0, 0, switchOn(func(o *Options) { o.oneLine = true })},
		{"all", 2, 0, 0, switchOn(func(o *Options) { o.all = true })},
		{"hide", 2, 0, 0, switchOn(func(o *Options) { o.all, o.details = false, false })},
		{"quiet", 4, 0, 0, switchOn(func(o *Options) { o.quiet, o.verbose = true, false })},
		{"verbose", 4, 0, 0, switchOn(func(o *Options) { o.quiet, o.verbose = false, true })},
		{"exit", 1, 0, 0, quit},
		{"quit", 4, 0, 0, quit},
		{"version", 4, 0, 0, func(_ context.Context, o *Options, _ []string) error { return o.version() }},
		{"help", 2, 0, 2, func(_ context.Context, o *Options, _ []string) error { return o.help() }},
	}
}

// elsewhere are Slurm's commands for daemons that are not here: what users get who are not
// operators, as from Slurm, and what does the command's work.
var elsewhere = map[string]struct{ denied, how string }{
	"abort":         {"slurm_shutdown error: Invalid user id", "delete the scheduler's pod"},
	"shutdown":      {"slurm_shutdown error: Invalid user id", "scale the scheduler to zero"},
	"takeover":      {"slurm_takeover error: Invalid user id", "a standby takes the lease by itself"},
	"setdebug":      {"slurm_set_debug_level error: Permission denied", "start the scheduler with --verbose"},
	"setdebugflags": {"slurm_set_debug_flags error: Permission denied", "start the scheduler with --verbose"},
	"schedloglevel": {"slurm_set_schedlog_level error: Permission denied", "start the scheduler with --verbose"},
	"fsdampeningfactor": {"slurm_set_fs_dampeningfactor error: Permission denied",
		"set the Cluster's priority parameters"},
}

// refuseElsewhere returns why a command for a daemon cannot be carried out.
func (o *Options) refuseElsewhere(ctx context.Context, name, denied, how string) error {
	operator, err := o.operator(ctx)
	if err != nil {
		return err
	}
	if !operator {
		return plain("%s", denied)
	}
	return slurmerr.Newf(slurmerr.Refused, "%s is not possible here: %s", name, how)
}

// operator reports whether the caller is an operator.
func (o *Options) operator(ctx context.Context) (bool, error) {
	c, err := o.connect()
	if err != nil {
		return false, err
	}
	info, err := c.ClusterInfo(ctx)
	is, _ := info["operator"].(bool)
	return is, err
}

// run carries out one command.
func run(ctx context.Context, o *Options, words []string) error {
	word, args := words[0], words[1:]
	for _, k := range keywords {
		if !keyvalue.Abbreviates(word, k.name, k.least) {
			continue
		}
		switch {
		case len(args) < k.args:
			return plain("too few arguments for keyword:%s", word)
		case k.most >= 0 && len(args) > k.most:
			return plain("too many arguments for keyword:%s", word)
		}
		err := k.run(ctx, o, args)
		if e, ok := errors.AsType[*slurmerr.Error](err); ok && o.quiet && k.name == "show" && e.Message == "" {
			e.Before = nil
		}
		return err
	}
	for name, e := range elsewhere {
		if strings.EqualFold(word, name) {
			return o.refuseElsewhere(ctx, name, e.denied, e.how)
		}
	}
	return plain("invalid keyword: %s", word)
}

// interactive reads and runs commands until "quit" or the end of the input. It fails if
// one of them has failed.
func (o *Options) interactive(ctx context.Context) error {
	_, _, typed := o.p.WindowSize()
	var failed error
	prompt := keyvalue.Prompt{
		Text: "scontrol: ", In: bufio.NewReader(o.p.In), Print: o.p.Print, Echo: !typed,
		Run: func(words []string) (done bool) {
			if err := run(ctx, o, words); err != nil {
				slurmerr.Print(o.p.Err, "scontrol", err)
				failed = &slurmerr.Error{Code: 1}
			}
			return o.quit
		},
	}
	if err := prompt.Loop(); err != nil {
		return err
	}
	return failed
}

// plain is an error that Slurm prints without the command's name in front.
func plain(format string, args ...any) *slurmerr.Error {
	return &slurmerr.Error{Before: []string{fmt.Sprintf(format, args...)}, Code: 1}
}

// ping prints whether the cluster answers, in the format that programs parse.
func ping(ctx context.Context, o *Options, _ []string) error {
	c, err := o.connect()
	if err != nil {
		return err
	}
	state := "UP"
	if _, err = c.ClusterInfo(ctx); err != nil {
		state = "DOWN"
	}
	return errors.Join(o.p.Print("Slurmctld(primary) at "+hostOf(c.Server())+" is "+state+"\n"), err)
}

// reconfigure checks the caller's permission. It has nothing else to do, because the
// objects that replace slurm.conf are watched.
func reconfigure(ctx context.Context, o *Options, _ []string) error {
	operator, err := o.operator(ctx)
	if err != nil {
		return err
	}
	if !operator {
		return plain("slurm_reconfigure error: Invalid user id")
	}
	return nil
}

func chooseCluster(ctx context.Context, o *Options, args []string) error {
	o.clusters = args
	return o.checkClusters(ctx)
}
