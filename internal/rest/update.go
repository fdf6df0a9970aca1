package rest

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/status"
)

// setting is a property of a job that can be changed: scontrol's name of it, and how the
// value becomes scontrol's.
type setting struct {
	key   string
	value func(json.RawMessage) (string, error)
}

// settings are the properties that POST job/ID changes, by name.
var settings = map[string]setting{
	"account":                   {"Account", text},
	"admin_comment":             {"AdminComment", text},
	"begin_time":                {"StartTime", instant},
	"comment":                   {"Comment", text},
	"constraints":               {"Features", text},
	"contiguous":                {"Contiguous", yesNo},
	"cores_per_socket":          {"CoresPerSocket", number},
	"cpus_per_task":             {"CPUsPerTask", number},
	"current_working_directory": {"WorkDir", text},
	"deadline":                  {"Deadline", instant},
	"dependency":                {"Dependency", text},
	"excluded_nodes":            {"ExcNodeList", list},
	"gres":                      {"Gres", text},
	"licenses":                  {"Licenses", text},
	"mail_type":                 {"MailType", list},
	"mail_user":                 {"MailUser", text},
	"memory_per_cpu":            {"MinMemoryCPU", number},
	"memory_per_node":           {"MinMemoryNode", number},
	"minimum_cpus_per_node":     {"MinCPUsNode", number},
	"name":                      {"JobName", text},
	"nice":                      {"Nice", number},
	"nodes":                     {"NumNodes", nodeRange},
	"oversubscribe":             {"OverSubscribe", yesNo},
	"partition":                 {"Partition", text},
	"priority":                  {"Priority", number},
	"qos":                       {"QOS", text},
	"requeue":                   {"Requeue", zeroOne},
	"required_nodes":            {"ReqNodeList", list},
	"reservation":               {"ReservationName", text},
	"sockets_per_node":          {"SocketsPerNode", number},
	"standard_output":           {"StdOut", text},
	"tasks":                     {"NumTasks", number},
	"temporary_disk_per_node":   {"MinTmpDiskNode", number},
	"threads_per_core":          {"ThreadsPerCore", number},
	"time_limit":                {"TimeLimit", minutes},
	"time_minimum":              {"TimeMin", minutes},
	"wckey":                     {"WCKey", text},
}

// updateJob serves POST job/ID. The body has the properties to change. "hold" holds or
// releases the job.
func updateJob(r *request) ([]byte, error) {
	id, ok := r.jobID()
	if !ok {
		return nil, r.updateFailed(&failure{number: errInvalidJobID})
	}
	set, hold, err := parseSettings(r.body)
	if err != nil {
		return nil, err
	}
	if len(set) > 0 {
		op := status.Operation{Verb: status.OpUpdate, Entity: status.EntityJob, Jobs: []string{id}, Set: set}
		if err := r.operate(op); err != nil {
			return nil, r.updateFailed(refusal(err, "", full))
		}
	}
	if hold != "" {
		if err := r.operate(status.Operation{Verb: hold, Jobs: []string{id}}); err != nil {
			return nil, r.updateFailed(refusal(err, "", full))
		}
	}
	return encode(r.head()), nil
}

// updateFailed completes an error about a change of a job.
func (r *request) updateFailed(f *failure) *failure {
	f.description = "job update from [" + strings.Trim(r.RemoteAddr, "[]") + "] failed"
	f.source = "_parse_job_list"
	return f
}

// parseSettings returns the settings in scontrol's form. hold is the verb of "hold", or "".
func parseSettings(data []byte) (set map[string]string, hold string, err error) {
	var in description
	if len(data) > 0 && json.Unmarshal(data, &in) != nil {
		return nil, "", errUnreadable
	}
	set = map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(in)) {
		if name == "hold" {
			on, err := boolean(in[name])
			if err != nil {
				return nil, "", badProperty(name, err)
			}
			hold = status.OpRelease
			if on {
				hold = status.OpHold
			}
			continue
		}
		s, ok := settings[name]
		if !ok {
			return nil, "", unknownProperty(name)
		}
		if set[s.key], err = s.value(in[name]); err != nil {
			return nil, "", badProperty(name, err)
		}
	}
	return set, hold, nil
}

// unknownProperty is the error about a property that does not exist.
func unknownProperty(name string) *failure {
	return &failure{
		code: http.StatusBadRequest, number: errRejected, spelling: errorCode,
		before: []format.Object{per("description", `Unknown key "`+name+`"`, "source", "hsearch_r")},
	}
}

// badProperty is the error about a value that a property cannot have.
func badProperty(name string, err error) *failure {
	return &failure{
		code: http.StatusBadRequest, number: errRejected, spelling: errorCode,
		before: []format.Object{
			per(
				"description", `Unable to process key "`+name+`": `+err.Error(),
				"error_number", errUnspecified,
				"error", numberText(errUnspecified),
				"source", "slurm_process_option_data",
			),
		},
	}
}
