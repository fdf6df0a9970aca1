package rest

import (
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/translate/value"
)

// recordParameters are those of GET jobs of slurmdb. Those of Slurm that Berth does not have
// are refused, so that no condition is ignored.
var recordParameters = []parameter{
	{"account", "accounts, separated by commas"}, {"association", "not supported"}, {"cluster", "name of the cluster"},
	{"constraints", "requested features, separated by commas"}, {"cpus_max", "greatest number of CPUs"},
	{"cpus_min", "least number of CPUs"}, {"disable_wait_for_result", "without effect"},
	{"end_time", "end of the time range, in Unix seconds or as for sacct"}, {"exit_code", "not supported"},
	{"format", "without effect: a record has all members"}, {"group", "groups"}, {"job_name", "names of jobs"},
	{"node", "nodes on which the jobs ran"}, {"nodes_max", "greatest number of nodes"},
	{"nodes_min", "least number of nodes"}, {"partition", "partitions"}, {"qos", "QOS"},
	{"reason", "not supported"}, {"reservation", "not supported"}, {"skip_steps", "records without steps"},
	{"start_time", "start of the time range"}, {"state", "states"}, {"step", "ids of jobs"},
	{"submit_time", "not supported"}, {"users", "users"}, {"wckey", "wckeys"},
}

func listRecords(r *request) ([]byte, error) {
	q, err := r.recordQuery()
	if err != nil {
		return nil, err
	}
	return r.records(q, "jobs")
}

func getRecord(r *request) ([]byte, error) {
	id, ok := r.jobID()
	if !ok {
		return nil, &failure{number: errInvalidJobID, source: "slurmdb_jobs_get", list: "jobs"}
	}
	return r.records(&status.RecordQuery{Jobs: []string{id}}, "jobs")
}

// records returns the document of the records that q selects. As in Slurm, the response has
// an error and the status 200 if there are none.
func (r *request) records(q *status.RecordQuery, name string) ([]byte, error) {
	list, err := r.session.client.Records(r.ctx(), q)
	if err != nil {
		return nil, refusal(err, "slurmdb_jobs_get", full).listing(name)
	}
	if len(list.Items) == 0 {
		return nil, nothingFound("slurmdb_jobs_get", name, 200)
	}
	f := r.form()
	return encode(
		format.AcctDocument(list.Items, &format.AcctSettings{Settings: format.Settings{Now: list.Time}}, &f),
	), nil
}

// nothingFound is the error of a search without a result.
func nothingFound(source, name string, code int) *failure {
	return &failure{code: code, number: errNothingFound, description: "Nothing found", source: source, list: name}
}

// recordQuery returns the query that the parameters describe.
func (r *request) recordQuery() (*status.RecordQuery, error) {
	q := &status.RecordQuery{}
	lists := map[string]*[]string{
		"account":     &q.Accounts,
		"constraints": &q.Constraints,
		"group":       &q.Groups,
		"job_name":    &q.Names,
		"partition":   &q.Partitions,
		"qos":         &q.QOS,
		"state":       &q.States,
		"step":        &q.Jobs,
		"users":       &q.Users,
		"wckey":       &q.WCKeys,
	}
	for name, values := range r.URL.Query() {
		text := strings.Join(values, ",")
		var err error
		switch list := lists[name]; {
		case text == "":
		case list != nil:
			*list = strings.Split(text, ",")
		case name == "node":
			q.Nodes, err = hostlist.Expand(text)
		case name == "skip_steps":
			q.NoSteps = text != "false"
		case name == "start_time":
			q.Start, err = r.time(text)
		case name == "end_time":
			q.End, err = r.time(text)
		case name == "cpus_min", name == "cpus_max":
			err = bound(&q.NCPUs, name, text)
		case name == "nodes_min", name == "nodes_max":
			err = bound(&q.NNodes, name, text)
		case name == "cluster" && text != r.session.cluster:
			return nil, nothingFound("slurmdb_jobs_get", "jobs", 200)
		case name == "cluster", name == "disable_wait_for_result", name == "format":
		default:
			return nil, invalid(errBadQuery, "the parameter %.40q is not supported", name)
		}
		if err != nil {
			return nil, invalid(errBadQuery, "%s: invalid value %.40q", name, text)
		}
	}
	for i := range q.States {
		q.States[i] = strings.ToUpper(q.States[i])
	}
	return q, nil
}

// bound sets the minimum or the maximum of a range.
func bound(r *[2]int64, name, text string) error {
	n, err := strconv.ParseInt(text, 10, 64)
	if strings.HasSuffix(name, "_max") {
		r[1] = n
	} else {
		r[0] = n
	}
	return err
}

// time parses a time in Unix seconds, or as commands do.
func (r *request) time(text string) (int64, error) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, nil
	}
	t, err := value.PastInstant(text, r.now)
	return t.Unix(), err
}
