package rest

import (
	"slices"
	"strconv"

	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/status"
)

func listQOS(r *request) ([]byte, error) { return r.qos("") }

func getQOS(r *request) ([]byte, error) { return r.qos(r.PathValue("name")) }

func (r *request) qos(name string) ([]byte, error) {
	s, err := r.acct("slurmdb_qos_get", "QOS")
	if err != nil {
		return nil, err
	}
	list := "QOS"
	if r.modern() {
		list = "qos"
	}
	return r.document(list, forms(qosObjects(s, name), r.laterQOS)), nil
}

func qosObjects(s *status.AcctState, name string) []any {
	found := []any{}
	for i := range s.QOS {
		if q := &s.QOS[i]; name == "" || q.Name == name {
			found = append(found, qosObject(q, i+1))
		}
	}
	return found
}

// qosObject returns a QOS. Berth's have no ids: theirs is the position in the list.
func qosObject(q *status.AcctQOS, id int) format.Object {
	flags, preempt, mode := []any{}, []any{}, []any{}
	for _, f := range q.Flags {
		flags = append(flags, f)
	}
	for _, p := range q.Preempt {
		preempt = append(preempt, p)
	}
	if q.PreemptMode != "" {
		mode = append(mode, q.PreemptMode)
	}
	factor := 1.0
	if f, err := strconv.ParseFloat(q.UsageFactor, 64); err == nil {
		factor = f
	}
	var threshold any
	if f, err := strconv.ParseFloat(q.UsageThres, 64); err == nil {
		threshold = f
	}
	return format.Object{
		{Name: "description", Value: q.Description}, {Name: "flags", Value: flags}, {Name: "id", Value: id},
		{Name: "limits", Value: qosLimits(q)}, {Name: "name", Value: q.Name},
		{Name: "preempt", Value: format.Object{
			{
				Name:  "list",
				Value: preempt,
			},
			{Name: "mode", Value: mode},
			{Name: "exempt_time", Value: orNull(int64(q.PreemptExempt))},
		}},
		{Name: "priority", Value: q.Priority}, {Name: "usage_factor", Value: decimal(factor)},
		{Name: "usage_threshold", Value: threshold},
	}
}

// decimal is a number that is written with a decimal point, as Slurm writes fractions.
type decimal float64

// MarshalJSON encodes the number.
func (d decimal) MarshalJSON() ([]byte, error) {
	text := strconv.FormatFloat(float64(d), 'f', -1, 64)
	if !slices.Contains([]byte(text), '.') {
		text += ".0"
	}
	return []byte(text), nil
}

// per returns an object with the members of pairs: a name, and its value.
func per(pairs ...any) format.Object {
	var o format.Object
	for i := 0; i+1 < len(pairs); i += 2 {
		name, _ := pairs[i].(string)
		o = append(o, format.Member{Name: name, Value: pairs[i+1]})
	}
	return o
}

func qosLimits(q *status.AcctQOS) format.Object {
	l := &q.Limits
	none := []any{}
	number := func(n int32) any { return orNull(int64(n)) }
	return per(
		"grace_time", q.GraceTime,
		"max", per(
			"active_jobs", per("accruing", nil, "count", number(l.GrpJobs)),
			"tres", per(
				"total", tresList(l.GrpTRES),
				"minutes", per("per", per("qos", tresList(l.GrpTRESMins), "job", tresList(l.MaxTRESMins),
					"account", none,
					"user", none)),
				"per", per("account", tresList(l.MaxTRESPerAccount), "job", tresList(l.MaxTRES),
					"node", tresList(l.MaxTRESPerNode), "user", tresList(l.MaxTRESUser)),
			),
			"wall_clock", per("per", per("qos", number(l.GrpWall), "job", number(l.MaxWall))),
			"jobs", per(
				"active_jobs", per("per", per("account", number(l.MaxJobsPerAccount), "user",
					number(l.MaxJobsPerUser))),
				"per", per("account", number(l.MaxSubmitJobsPerAccount), "user", number(l.MaxSubmitJobsPerUser)),
			),
			"accruing", per("per", per("account", nil, "user", nil)),
		),
		"factor", nil,
		"min", per("priority_threshold", nil, "tres", per("per", per("job", tresList(l.MinTRES)))),
	)
}

// tres is a trackable resource of every database of Slurm.
type tres struct {
	kind, name string
	id         int
}

var fixedTRES = []tres{
	{"cpu", "", 1}, {"mem", "", 2}, {"energy", "", 3}, {"node", "", 4}, {"billing", "", 5}, {"fs", "disk", 6},
	{"vmem", "", 7}, {"pages", "", 8}, {"dynamic_offset", "", 1000}, {"gres", "gpu", 1001},
}

func listTRES(r *request) ([]byte, error) {
	return r.document("TRES", forms(tresObjects(nil), r.laterTRES)), nil
}

// tresObjects returns all TRES with their counts, by type and name; nil: as defined.
func tresObjects(counts map[string]int64) []any {
	found := []any{}
	for _, t := range fixedTRES {
		if counts != nil && t.kind == "dynamic_offset" {
			continue
		}
		found = append(found, per("type", t.kind, "name", textOrNull(t.name), "id", t.id, "count", counts[t.kind]))
	}
	return found
}

func listClusters(r *request) ([]byte, error) {
	o, err := r.cluster()
	if err != nil {
		return nil, err
	}
	return r.document("clusters", []any{o}), nil
}

func getCluster(r *request) ([]byte, error) {
	if r.PathValue("name") != r.session.cluster {
		return nil, nothingFound("slurmdb_clusters_get", "clusters", 0)
	}
	return listClusters(r)
}

// rpcVersion is that of Slurm 22.05.
const rpcVersion = 9728

func (r *request) cluster() (format.Object, error) {
	nodes, err := r.session.client.Nodes(r.ctx())
	if err != nil {
		return nil, refusal(err, "slurmdb_clusters_get", full).listing("clusters")
	}
	info, err := clusterInfo(r.ctx(), r.session.client)
	if err != nil {
		return nil, refusal(err, "slurmdb_clusters_get", full).listing("clusters")
	}
	all := &status.Partition{}
	byName := map[string]*status.Node{}
	for i := range nodes.Items {
		n := &nodes.Items[i]
		all.Nodes = append(all.Nodes, n.Name)
		byName[n.Name] = n
	}
	cpus, memory, gpus := partitionSize(all, byName)
	counts := map[string]int64{
		"cpu": cpus, "mem": memory, "node": int64(len(all.Nodes)), "billing": cpus, "gres": gpus,
	}
	return per(
		"controller", per("host", info.Host, "port", 0), "flags", []any{"MULTIPLE_SLURMD"}, "name", r.session.cluster,
		"nodes", hostlist.Fold(all.Nodes), "select_plugin", "cons_tres", "associations", per("root",
			r.rootAssociation()),
		"rpc_version", rpcVersion, "tres", forms(tresObjects(counts), r.laterTRES),
	), nil
}

func listWCKeys(r *request) ([]byte, error) {
	s, err := r.acct("slurmdb_wckeys_get", "wckeys")
	if err != nil {
		return nil, err
	}
	return r.document("wckeys", wckeyObjects(s)), nil
}

func wckeyObjects(s *status.AcctState) []any {
	found := []any{}
	for i := range s.Users {
		u := &s.Users[i]
		for _, key := range u.WCKeys {
			found = append(found, per("accounting", []any{}, "cluster", s.Cluster, "id", len(found)+1, "name", key,
				"user", u.Name, "flags", []any{}))
		}
	}
	return found
}

// acctConfig serves GET config.
func acctConfig(r *request) ([]byte, error) {
	s, err := r.acct("slurmdb_config_get", "clusters")
	if err != nil {
		return nil, err
	}
	cluster, err := r.cluster()
	if err != nil {
		return nil, err
	}
	list := []any{}
	for _, a := range associations(s) {
		list = append(list, a.object(s.Cluster))
	}
	qos, trackable := "QOS", "TRES"
	if r.modern() {
		qos, trackable = "qos", "tres"
	}
	return encode(append(r.head(), per(
		"clusters", []any{cluster},
		trackable, forms(tresObjects(nil), r.laterTRES),
		"accounts", forms(accountObjects(s, ""), r.laterAccount),
		"users", forms(userObjects(s, ""), r.laterUser),
		qos, forms(qosObjects(s, ""), r.laterQOS),
		"wckeys", wckeyObjects(s),
		"associations", forms(list, r.laterAssociation),
	)...)), nil
}

// acctDiag serves GET diag of slurmdb, which only operators may read.
func acctDiag(r *request) ([]byte, error) {
	info, err := clusterInfo(r.ctx(), r.session.client)
	if err != nil {
		return nil, refusal(err, "slurmdb_get_stats", full)
	}
	if !info.Operator {
		return nil, &failure{number: errAccess, source: "slurmdb_get_stats"}
	}
	return r.document(
		"statistics", per("time_start", info.Boot, "rollups", []any{}, "RPCs", []any{}, "users", []any{}),
	), nil
}
