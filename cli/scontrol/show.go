package scontrol

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/internal/keyvalue"
	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/translate/value"
)

// shown are the entities of show that need a cluster, with the shortest abbreviation of
// each. most: how many words may follow.
var shown = []struct {
	name        string
	least, most int
	show        func(ctx context.Context, o *Options, c Cluster, ids []string) error
}{
	{"jobs", 1, 1, showJob}, {"jobid", 1, 1, showJob}, {"steps", 2, 1, showStep}, {"nodes", 1, 1, showNode},
	{"partitions", 2, 1, showPartition}, {"partitionname", 2, 1, showPartition},
	{"reservations", 1, 1, showReservation}, {"reservationname", 1, 1, showReservation},
	{"config", 1, 1, showConfig}, {"licenses", 2, 1, showLicenses},
	{"assoc_mgr", 2, -1, showAssociations}, {"aliases", 1, 1, showAliases}, {"topology", 1, 1, showTopology},
	{"federation", 1, 1, showFederation},
}

// quietly are entities without any objects, as in a Slurm without them; said is what is
// printed anyway.
var quietly = []struct {
	name, said string
	least      int
}{
	{"burstbuffer", "", 2},
	{"bbstat", "", 2},
	{"dwstat", "", 2},
	{"frontend", "No nodes in the system\n", 2},
	{"daemons", "\n", 1},
}

// show prints an entity. Options may also stand behind the word show.
func show(ctx context.Context, o *Options, args []string) error {
	args = slices.DeleteFunc(slices.Clone(args), o.flag)
	if len(args) == 0 {
		return plain("too few arguments for keyword:show")
	}
	entity, ids := args[0], args[1:]
	if key, v, found := strings.Cut(entity, "="); found { // show job=12
		entity, ids = key, append([]string{v}, ids...)
	}
	switch {
	case keyvalue.Abbreviates(entity, "hostnames", 5):
		return o.hostnames(ids)
	case keyvalue.Abbreviates(entity, "hostlistsorted", 9):
		return o.hostlist(ids, true)
	case keyvalue.Abbreviates(entity, "hostlist", 5):
		return o.hostlist(ids, false)
	case keyvalue.Abbreviates(entity, "slurmd", 2):
		return slurmerr.New(
			slurmerr.Refused,
			"there is no slurmd here: the kubelet of each node and the agent of each job do its work (show node)",
		)
	}
	for _, q := range quietly {
		if keyvalue.Abbreviates(entity, q.name, q.least) {
			return o.p.Print(q.said)
		}
	}
	for _, e := range shown {
		if !keyvalue.Abbreviates(entity, e.name, e.least) &&
			!keyvalue.Abbreviates(entity, strings.TrimSuffix(e.name, "s"), e.least) {
			continue
		}
		if e.most >= 0 && len(ids) > e.most {
			return plain("too many arguments for keyword:show")
		}
		c, err := o.connect()
		if err != nil {
			return err
		}
		return e.show(ctx, o, c, ids)
	}
	return plain("invalid entity:%s for keyword:show ", printable.Escape(entity))
}

// flag takes an option that stands behind show; it reports whether a is one.
func (o *Options) flag(a string) bool {
	switch {
	case a == "-o" || a == "--oneliner":
		o.oneLine = true
	case a == "--details" || strings.HasPrefix(a, "-d") && strings.Trim(a, "-d") == "":
		o.details = true
	case a == "-a" || a == "--all":
		o.all = true
	default:
		return false
	}
	return true
}

// hostnames expands a node list, that of SLURM_NODELIST if none is given.
func (o *Options) hostnames(lists []string) error {
	list := strings.Join(lists, ",")
	if len(lists) == 0 {
		list = o.p.Env("SLURM_NODELIST")
	}
	if len(lists) == 0 && list == "" {
		slurmerr.Print(o.p.Err, "scontrol", &slurmerr.Error{Message: "host list is empty"})
		return nil // Slurm says so, and ends well
	}
	names, err := o.expand(list)
	if err != nil {
		o.reportRange(err)
		fmt.Fprintf(o.p.Err, "Invalid hostlist: %s\n", printable.Escape(list))
		return nil // Slurm says so, and ends well
	}
	if len(names) == 0 {
		return nil
	}
	return o.p.Print(strings.Join(names, "\n") + "\n")
}

// reportRange prints the error about an invalid range in a host list, if that was the error.
func (o *Options) reportRange(err error) {
	if line := hostlist.RangeError(err); line != "" {
		slurmerr.Print(o.p.Err, "scontrol", &slurmerr.Error{Message: printable.Escape(line)})
	}
}

// expand reads a host list, or the file with one that an absolute path names.
func (o *Options) expand(list string) ([]string, error) {
	if strings.HasPrefix(list, "/") {
		data, err := o.p.ReadFile(list)
		if err != nil {
			return nil, err
		}
		list = strings.Join(
			strings.FieldsFunc(string(data), func(r rune) bool { return r == '\n' || r == ' ' || r == '\r' }),
			",",
		)
	}
	return hostlist.ExpandLenient(list)
}

// hostlist folds node names into a list.
func (o *Options) hostlist(lists []string, sorted bool) error {
	if len(lists) == 0 {
		return errors.Join(o.help(), plain("invalid encode argument"))
	}
	list := strings.Join(lists, ",")
	names, err := o.expand(list)
	if err != nil {
		o.reportRange(err)
		return plain("Invalid hostlist: %s", printable.Escape(list))
	}
	if sorted {
		hostlist.SortHosts(names)
	}
	return o.p.Print(hostlist.Fold(names) + "\n")
}

func (o *Options) settings(now int64) *format.Settings {
	s := &format.Settings{Now: now, Location: o.p.Now().Location(), Details: o.details}
	var err error
	if s.Layout, err = format.ParseTimeFormat(o.p.Env("SLURM_TIME_FORMAT")); err != nil {
		slurmerr.Print(o.p.Err, "scontrol", err)
	}
	s.ArrayLen = format.ArrayLen(o.p.Env("SLURM_BITSTR_LEN"))
	if now == 0 {
		s.Now = o.p.Now().Unix()
	}
	return s
}

// recordsLine returns the line that --verbose prints before the records, with their number
// and when they were read. As in Slurm, that time is Unknown for a single record that was
// requested by its id.
func (o *Options) recordsLine(s *format.Settings, records int, single bool) []byte {
	if !o.verbose {
		return nil
	}
	at := "Unknown"
	if !single {
		at = time.Unix(s.Now, 0).In(s.Location).Format("2006-01-02T15:04:05")
	}
	return fmt.Appendf(nil, "last_update_time=%s, records=%d\n", at, records)
}

// first is the only id, or none.
func first(ids []string) string {
	if len(ids) == 0 {
		return ""
	}
	return ids[0]
}

func showJob(ctx context.Context, o *Options, c Cluster, ids []string) error {
	f := jobs.Filter{States: jobs.AllStates}
	id := first(ids)
	number, task, isTask := strings.Cut(id, "_")
	all := number != "" && strings.Trim(number, "0") == "" // 0 stands for all jobs, 0_2 for task 2 of all arrays
	if id != "" && !all {
		number, _, _ := strings.Cut(id, "_")
		number, _, _ = strings.Cut(number, "+")
		if _, ok := jobs.ParseID(number); !ok || !readable(id) {
			return plain("scontrol_print_job error: Invalid job id specified")
		}
		f.IDs = []string{id}
	}
	list, err := c.Jobs(ctx, f)
	if err != nil {
		return err
	}
	if all && isTask {
		if task == "" {
			task, id = "0", number+"_0"
		}
		list.Items = slices.DeleteFunc(list.Items, func(j status.Job) bool { return !hasTask(&j, task) })
		f.IDs = []string{id}
	}
	switch {
	case len(list.Items) == 0 && strings.ContainsAny(id, "_+"):
		return o.notFound("Job", id)
	case len(list.Items) == 0 && id != "" && !all:
		return plain("slurm_load_jobs error: Invalid job id specified")
	case len(list.Items) == 0:
		return o.p.Print("No jobs in the system\n")
	}
	s := o.settings(list.Time)
	out := o.recordsLine(s, len(list.Items), id != "" && !all)
	for _, j := range format.SortJobs(list.Items, "i") {
		oneTask(j, f.IDs)
		out = format.JobRecord(j, s).Append(out, o.oneLine)
	}
	return o.p.Print(string(out))
}

// hasTask reports whether the job is the task of an array, or stands for it.
func hasTask(j *status.Job, task string) bool {
	if j.ArrayTaskID == task {
		return true
	}
	n, err := strconv.ParseInt(task, 10, 32)
	if err != nil || !j.ArrayWhole {
		return false
	}
	text, _, _ := strings.Cut(j.ArrayTaskID, "%")
	tasks, err := value.ArrayIntervals(text)
	return err == nil && tasks.Has(int32(n))
}

// readable reports whether the text after the id of a job, if any, is the number of a task
// or a component.
func readable(job string) bool {
	at := strings.IndexAny(job, "_+")
	return at < 0 || strings.Trim(job[at+1:], "0123456789") == ""
}

// oneTask changes the record of pending tasks to that of the requested task: Slurm
// shows only its index.
func oneTask(j *status.Job, ids []string) {
	if len(ids) != 1 || !j.ArrayWhole {
		return
	}
	if _, index, ok := strings.Cut(ids[0], "_"); ok && strings.Trim(index, "0123456789") == "" && index != "" {
		if _, throttle, limited := strings.Cut(j.ArrayTaskID, "%"); limited {
			n, err := strconv.ParseInt(throttle, 10, 32)
			if err == nil {
				j.ArrayMax = int32(n)
			}
		}
		j.ArrayTaskID, j.ArrayWhole = index, false
	}
}

func showStep(ctx context.Context, o *Options, c Cluster, ids []string) error {
	var f jobs.StepFilter
	id, _, _ := strings.Cut(first(ids), ",") // as in Slurm, the first of a list
	job, _, isStep := strings.Cut(id, ".")
	invalid := false // no id, although a word is there
	switch {
	case isStep:
		if name := id[len(job)+1:]; name != "" && (name[0] < '0' || name[0] > '9') {
			id = job + ".0" // as Slurm reads a name, also that of the batch step
		}
		f.IDs = []string{id}
	case id != "":
		f.Jobs = []string{id}
	}
	number, _, _ := strings.Cut(job, "_")
	number, _, _ = strings.Cut(number, "+")
	if _, ok := jobs.ParseID(number); len(ids) > 0 && !ok {
		if isStep && strings.HasPrefix(number, "0") {
			return o.notFound("Job step", "0.Invalid")
		}
		f, id, invalid = jobs.StepFilter{}, "", true // Slurm lists all steps
	}
	list, err := c.Steps(ctx, f)
	if err != nil {
		return err
	}
	switch {
	case len(list.Items) == 0 && invalid:
		return o.notFound("Job step", "0.Invalid")
	case len(list.Items) == 0 && id == "":
		none := o.recordsLine(o.settings(list.Time), 0, false)
		return o.p.Print(string(none) + "No job steps in the system\n")
	case len(list.Items) == 0:
		known, err := c.Jobs(ctx, jobs.Filter{IDs: []string{job}, States: jobs.AllStates, Fields: []string{"id"}})
		if err != nil || len(known.Items) > 0 {
			return o.notFound("Job step", id)
		}
		return plain("slurm_get_job_steps error: Invalid job id specified")
	}
	s := o.settings(list.Time)
	format.SortStepRecords(list.Items)
	out := o.recordsLine(s, len(list.Items), false)
	for i := range list.Items {
		out = format.StepRecord(&list.Items[i], s).Append(out, o.oneLine)
	}
	return o.p.Print(string(out))
}

func showNode(ctx context.Context, o *Options, c Cluster, ids []string) error {
	list, err := c.Nodes(ctx)
	if err != nil {
		return err
	}
	wanted, err := hostlist.ExpandLenient(first(ids))
	if err != nil {
		if hostlist.RangeError(err) == "" {
			return o.notFound("Node", first(ids))
		}
		o.reportRange(err)
		return plain("unable to parse node list %s", printable.Escape(first(ids)))
	}
	s := o.settings(0)
	s.GRESNames = format.GRESNames(list.Items)
	out := o.recordsLine(s, len(list.Items), false)
	if len(ids) == 0 {
		for i := range list.Items {
			out = format.NodeRecord(&list.Items[i], s).Append(out, o.oneLine)
		}
	}
	var missing []string
	for _, name := range wanted { // in the order in which they are named
		i := slices.IndexFunc(list.Items, func(n status.Node) bool { return n.Name == name })
		if i < 0 {
			missing = append(missing, name)
			continue
		}
		out = format.NodeRecord(&list.Items[i], s).Append(out, o.oneLine)
	}
	if len(list.Items) == 0 && len(ids) == 0 {
		out = append(out, "No nodes in the system\n"...)
	}
	if err := o.p.Print(string(out)); err != nil || len(missing) == 0 {
		return err
	}
	for _, name := range missing {
		err = o.notFound("Node", name)
	}
	return err
}

// notFound reports that no object has that name, which Slurm prints like a result, but
// with another exit code.
func (o *Options) notFound(what, name string) error {
	if err := o.p.Print(what + " " + printable.Escape(name) + " not found\n"); err != nil {
		return err
	}
	return &slurmerr.Error{Code: 1}
}

func showPartition(ctx context.Context, o *Options, c Cluster, ids []string) error {
	parts, err := c.Partitions(ctx)
	if err != nil {
		return err
	}
	nodes, err := c.Nodes(ctx)
	if err != nil {
		return err
	}
	id := first(ids)
	out := o.recordsLine(o.settings(0), len(parts.Items), false)
	found := false
	for i := range parts.Items {
		p := &parts.Items[i]
		if len(ids) > 0 && p.Name != id || len(ids) == 0 && p.Hidden && !o.all {
			continue
		}
		found = true
		out = format.PartitionRecord(p, nodes.Items).Append(out, o.oneLine)
	}
	if err := o.p.Print(string(out)); err != nil || found || len(ids) == 0 {
		return err
	}
	return o.notFound("Partition", id)
}

func showReservation(ctx context.Context, o *Options, c Cluster, ids []string) error {
	list, err := c.Reservations(ctx)
	if err != nil {
		return err
	}
	id := first(ids)
	s := o.settings(0)
	if err := o.p.Print(string(o.recordsLine(s, len(list.Items), false))); err != nil {
		return err
	}
	var out []byte
	for i := range list.Items {
		if len(ids) == 0 || list.Items[i].Name == id {
			out = format.ReservationRecord(&list.Items[i], s).Append(out, o.oneLine)
		}
	}
	switch {
	case len(out) == 0 && len(ids) > 0:
		return o.notFound("Reservation", id)
	case len(out) == 0:
		out = []byte("No reservations in the system\n")
	}
	return o.p.Print(string(out))
}

func showLicenses(ctx context.Context, o *Options, c Cluster, ids []string) error {
	list, err := c.Licenses(ctx)
	if err != nil {
		return err
	}
	id := first(ids)
	var out []byte
	for i := range list.Items {
		l := &list.Items[i]
		if id != "" && l.Name != id {
			continue
		}
		out = format.LicenseRecord(l).Append(out, o.oneLine)
	}
	switch {
	case len(list.Items) == 0:
		out = []byte("No licenses configured in Slurm.\n")
	case len(out) == 0:
		return plain("License name %s not found.", printable.Escape(id))
	}
	return o.p.Print(string(out))
}

// showAliases maps addresses and host names to node names.
func showAliases(ctx context.Context, o *Options, c Cluster, ids []string) error {
	list, err := c.Nodes(ctx)
	if err != nil {
		return err
	}
	host, err := o.p.Hostname()
	if err != nil {
		return err
	}
	if len(ids) > 0 {
		host = ids[0]
	}
	var names []string
	for i := range list.Items {
		if n := &list.Items[i]; n.Host == host || n.Name == host || n.Address == host {
			names = append(names, n.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return o.p.Print(strings.Join(names, " ") + "\n")
}
