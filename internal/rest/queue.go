package rest

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/build"
	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/translate/dump"
	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/translate/value"
)

// errNotModified answers a request for what has changed since a time in the future.
var errNotModified = errors.New("not modified")

// form returns the form of the documents that package dump writes.
func (r *request) form() dump.Form {
	return dump.Form{
		Syntax: dump.JSON, Parser: r.version.parser, Slurm: build.Slurm, Cluster: r.session.cluster,
		Command: []string{"slurmrestd"}, User: r.session.user, Now: r.now.Unix(),
	}
}

// checkUpdateTime parses update_time. The cluster does not record when something has
// changed, so only a time after now has the answer "not modified".
func (r *request) checkUpdateTime() error {
	text := r.URL.Query().Get("update_time")
	if text == "" {
		return nil
	}
	t, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil:
		return invalid(errBadQuery, "update_time: a time in Unix seconds expected, not %.40q", text)
	case t > r.now.Unix():
		return errNotModified
	}
	return nil
}

func listJobs(r *request) ([]byte, error) {
	if err := r.checkUpdateTime(); err != nil {
		return nil, err
	}
	list, err := r.session.client.Jobs(r.ctx(), jobs.Filter{States: jobs.AllStates})
	if err != nil {
		return nil, refusal(err, "slurm_load_jobs", full).listing("jobs")
	}
	return dump.Jobs(r.form(), format.SortJobs(list.Items, "i")), nil
}

// listing returns f with the empty list of what was requested.
func (f *failure) listing(name string) *failure {
	f.list = name
	return f
}

// jobID returns the id in the path: 12, 12_3 or 12+1.
func (r *request) jobID() (id string, ok bool) {
	id = r.PathValue("id")
	number, _, _ := strings.Cut(strings.Replace(id, "+", "_", 1), "_")
	_, ok = jobs.ParseID(number)
	return id, ok
}

func getJob(r *request) ([]byte, error) {
	id, ok := r.jobID()
	if !ok {
		return nil, &failure{
			code:        400,
			number:      errNoJob,
			description: "Unable to find JobId=" + id,
			source:      "_handle_job_get",
		}
	}
	list, err := r.session.client.Jobs(r.ctx(), jobs.Filter{IDs: []string{id}, States: jobs.AllStates})
	if err != nil {
		return nil, refusal(err, "slurm_load_job", full).listing("jobs")
	}
	if len(list.Items) == 0 {
		return nil, &failure{
			number:      errInvalidJobID,
			description: "Unable to find JobId=" + id,
			source:      "slurm_load_job",
			list:        "jobs",
		}
	}
	return dump.Jobs(r.form(), format.SortJobs(list.Items, "i")), nil
}

// signalOf returns the signal of DELETE job/ID; 9 without one.
func (r *request) signalOf() (int32, error) {
	text := r.URL.Query().Get("signal")
	if text == "" {
		return 9, nil
	}
	n, err := value.SignalNumber(text)
	if err != nil || n <= 0 {
		return 0, &failure{
			code:        400,
			number:      errBadQuery,
			description: "invalid signal: 0",
			source:      "HTTP request: signal",
		}
	}
	return n, nil
}

func deleteJob(r *request) ([]byte, error) {
	sig, err := r.signalOf()
	if err != nil {
		return nil, err
	}
	id, ok := r.jobID()
	failed := func(f *failure) *failure {
		f.description = "unable to kill JobId=" + id + " with signal " + strconv.Itoa(
			int(sig),
		) + ": " + numberText(
			f.number,
		)
		f.source = "slurm_kill_job"
		return f
	}
	if !ok {
		return nil, failed(&failure{number: errInvalidJobID})
	}
	op := status.Operation{Verb: status.OpCancel, Jobs: []string{id}}
	if sig != 9 {
		op.Verb, op.Signal = status.OpSignal, sig
	}
	if err := r.operate(op); err != nil {
		return nil, failed(refusal(err, "", full))
	}
	return encode(r.head()), nil
}

// operate carries out an operation on one job. As in Slurm, it is no error if the job has
// ended already.
func (r *request) operate(op status.Operation) error {
	result, err := r.session.client.Operate(r.ctx(), op)
	if err != nil {
		return err
	}
	for _, item := range result.Items {
		ended := op.Verb != status.OpUpdate && item.Code == status.CodeAlreadyCompleting
		if item.Error != "" && !ended {
			return errors.New(item.Error)
		}
	}
	return nil
}

func listNodes(r *request) ([]byte, error) {
	if err := r.checkUpdateTime(); err != nil {
		return nil, err
	}
	return r.nodes("")
}

func getNode(r *request) ([]byte, error) { return r.nodes(r.PathValue("name")) }

// nodes returns the document of the named node, or of all.
func (r *request) nodes(name string) ([]byte, error) {
	list, err := r.session.client.Nodes(r.ctx())
	if err != nil {
		return nil, refusal(err, "slurm_load_node", errno).listing("nodes")
	}
	if name != "" {
		list.Items = slices.DeleteFunc(list.Items, func(n status.Node) bool { return n.Name != name })
		if len(list.Items) == 0 {
			return nil, &failure{number: errInvalidNode, spelling: errno, list: "nodes"}
		}
	}
	return dump.Nodes(r.form(), list.Items), nil
}

func listPartitions(r *request) ([]byte, error) {
	if err := r.checkUpdateTime(); err != nil {
		return nil, err
	}
	return r.partitions("")
}

func getPartition(r *request) ([]byte, error) {
	if err := r.checkUpdateTime(); err != nil {
		return nil, err
	}
	return r.partitions(r.PathValue("name"))
}

func (r *request) partitions(name string) ([]byte, error) {
	list, err := r.session.client.Partitions(r.ctx())
	if err != nil {
		return nil, refusal(err, "slurm_load_partitions", errno).listing("partitions")
	}
	nodes, err := r.session.client.Nodes(r.ctx())
	if err != nil {
		return nil, refusal(err, "slurm_load_partitions", errno).listing("partitions")
	}
	if r.modern() {
		return r.laterPartitions(name, list.Items)
	}
	byName := map[string]*status.Node{}
	for i := range nodes.Items {
		byName[nodes.Items[i].Name] = &nodes.Items[i]
	}
	found := []any{}
	for i := range list.Items {
		if p := &list.Items[i]; name == "" || p.Name == name {
			found = append(found, partition(p, byName))
		}
	}
	if len(found) == 0 && name != "" {
		return nil, &failure{number: errNoPartition, spelling: errno, list: "partitions"}
	}
	return r.document("partitions", found), nil
}

// laterPartitions returns the document of later versions.
func (r *request) laterPartitions(name string, list []status.Partition) ([]byte, error) {
	if name != "" {
		list = slices.DeleteFunc(list, func(p status.Partition) bool { return p.Name != name })
		if len(list) == 0 {
			return nil, &failure{number: errNoPartition, list: "partitions"}
		}
	}
	return dump.Partitions(r.form(), list), nil
}

// partition returns a partition as the REST API of Slurm 22.05 does.
func partition(p *status.Partition, nodes map[string]*status.Node) format.Object {
	cpus, memory, gpus := partitionSize(p, nodes)
	tres := "cpu=" + strconv.FormatInt(cpus, 10) + ",mem=" + strconv.FormatInt(memory, 10) + "M,node=" +
		strconv.Itoa(len(p.Nodes)) + ",billing=" + strconv.FormatInt(cpus, 10)
	if gpus > 0 {
		tres += ",gres/gpu=" + strconv.FormatInt(gpus, 10)
	}
	flags := []any{}
	for flag, set := range map[string]bool{"default": p.Default, "hidden": p.Hidden, "root_only": p.RootOnly,
		"req_resv": p.ReqResv, "exclusive_user": p.ExclusiveUser} {
		if set {
			flags = append(flags, flag)
		}
	}
	slices.SortFunc(flags, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
	preempt := "disabled"
	if p.PreemptMode != "" && !strings.EqualFold(p.PreemptMode, "off") {
		preempt = strings.ToLower(p.PreemptMode)
	}
	return format.Object{
		{Name: "flags", Value: flags},
		{Name: "preemption_mode", Value: []any{preempt}},
		{
			Name:  "allowed_allocation_nodes",
			Value: "",
		},
		{Name: "allowed_accounts", Value: strings.Join(p.AllowAccounts, ",")},
		{Name: "allowed_groups", Value: strings.Join(p.AllowGroups, ",")},
		{Name: "allowed_qos", Value: strings.Join(p.AllowQOS, ",")},
		{Name: "alternative", Value: ""},
		{Name: "billing_weights", Value: ""},
		{Name: "default_memory_per_cpu", Value: orNull(p.DefMemPerCPU)},
		{Name: "default_memory_per_node", Value: orNull(p.DefMemPerNode)},
		{Name: "default_time_limit", Value: orNull(int64(p.DefaultTime))},
		{Name: "denied_accounts", Value: strings.Join(p.DenyAccounts, ",")},
		{Name: "denied_qos", Value: strings.Join(p.DenyQOS, ",")},
		{
			Name:  "preemption_grace_time",
			Value: p.GraceTime,
		},
		{Name: "maximum_cpus_per_node", Value: orUnlimited(p.MaxCPUs)},
		{Name: "maximum_memory_per_cpu", Value: orNull(p.MaxMemPerCPU)},
		{Name: "maximum_memory_per_node", Value: orNull(p.MaxMemPerNode)},
		{Name: "maximum_nodes_per_job", Value: orUnlimited(p.MaxNodes)},
		{Name: "max_time_limit", Value: p.MaxTime},
		{Name: "min nodes per job", Value: p.MinNodes},
		{Name: "name", Value: p.Name},
		{
			Name:  "nodes",
			Value: hostlist.Fold(p.Nodes),
		},
		{Name: "over_time_limit", Value: orNull(int64(p.OverTimeLimit))},
		{Name: "priority_job_factor", Value: p.PriorityJobFactor},
		{Name: "priority_tier", Value: p.PriorityTier},
		{Name: "qos", Value: p.QOS},
		{Name: "state", Value: p.State},
		{Name: "total_cpus", Value: cpus},
		{Name: "total_nodes", Value: len(p.Nodes)},
		{Name: "tres", Value: tres},
	}
}

// partitionSize returns the CPUs, the memory in MiB and the GPUs of a partition.
func partitionSize(p *status.Partition, nodes map[string]*status.Node) (cpus, memory, gpus int64) {
	for _, name := range p.Nodes {
		n := nodes[name]
		if n == nil {
			continue
		}
		cpus += int64(n.CPUs)
		memory += n.Memory
		for g := range strings.SplitSeq(n.GRES, ",") {
			if strings.HasPrefix(g, "gpu") {
				count, _ := strconv.ParseInt(g[strings.LastIndexByte(g, ':')+1:], 10, 64)
				gpus += count
			}
		}
	}
	return cpus, memory, gpus
}

// orNull returns n, or nil for 0 and numbers below, which mean none.
func orNull(n int64) any {
	if n <= 0 {
		return nil
	}
	return n
}

// orUnlimited returns n, or -1 for 0, which means no limit in a Partition.
func orUnlimited(n int32) int32 {
	if n == 0 {
		return -1
	}
	return n
}

func listReservations(r *request) ([]byte, error) {
	if err := r.checkUpdateTime(); err != nil {
		return nil, err
	}
	return r.reservations("")
}

func getReservation(r *request) ([]byte, error) {
	if err := r.checkUpdateTime(); err != nil {
		return nil, err
	}
	return r.reservations(r.PathValue("name"))
}

func (r *request) reservations(name string) ([]byte, error) {
	list, err := r.session.client.Reservations(r.ctx())
	if err != nil {
		return nil, refusal(err, "slurm_load_reservations", errno).listing("reservations")
	}
	found := []any{}
	for i := range list.Items {
		if v := &list.Items[i]; name == "" || v.Name == name {
			found = append(found, r.laterReservation(reservation(v), v))
		}
	}
	if len(found) == 0 && name != "" {
		return nil, &failure{number: errBadReservation, spelling: errno, list: "reservations"}
	}
	return encode(r.withUpdate(append(r.head(), format.Member{Name: "reservations", Value: found}))), nil
}

// noWatts is Slurm's value for a reservation without a limit of power.
const noWatts = 1<<32 - 2

func reservation(v *status.Reservation) format.Object {
	flags := []any{}
	for _, f := range v.Flags {
		flags = append(flags, f)
	}
	o := format.Object{
		{Name: "flags", Value: flags}, {Name: "accounts", Value: strings.Join(v.Accounts, ",")},
		{Name: "burst_buffer", Value: ""}, {Name: "core_count", Value: v.CPUs}, {Name: "core_spec_cnt", Value: 0},
		{Name: "end_time", Value: v.End}, {Name: "features", Value: v.Features},
		{Name: "groups", Value: strings.Join(v.Groups, ",")}, {Name: "licenses", Value: v.Licenses},
		{Name: "max_start_delay", Value: v.MaxStartIn}, {Name: "name", Value: v.Name},
		{Name: "node_count", Value: len(v.Nodes)}, {Name: "node_list", Value: hostlist.Fold(v.Nodes)},
		{Name: "partition", Value: v.Partition},
	}
	if v.PurgeComp > 0 {
		o = append(o, format.Member{Name: "purge_completed", Value: format.Object{{Name: "time", Value: v.PurgeComp}}})
	}
	return append(o, format.Object{
		{Name: "start_time", Value: v.Start}, {Name: "watts", Value: int64(noWatts)}, {Name: "tres", Value: v.TRES},
		{Name: "users", Value: strings.Join(v.Users, ",")},
	}...)
}

func licenses(r *request) ([]byte, error) {
	list, err := r.session.client.Licenses(r.ctx())
	if err != nil {
		return nil, refusal(err, "slurm_load_licenses", full).listing("licenses")
	}
	found := []any{}
	for _, l := range list.Items {
		found = append(found, format.Object{
			{Name: "LicenseName", Value: l.Name},
			{Name: "Total", Value: l.Total},
			{Name: "Used", Value: l.Used},
			{
				Name:  "Free",
				Value: l.Total - l.Used,
			},
			{Name: "Remote", Value: false},
			{Name: "Reserved", Value: l.Reserved},
		})
	}
	return encode(r.withUpdate(append(r.head(), format.Member{Name: "licenses", Value: found}))), nil
}
