package rest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// property is a member of the description of a job in a submission: which option of sbatch
// it is, and how its value becomes that of the option.
type property struct {
	name   string
	option string // of sbatch, without the dashes
	value  func(json.RawMessage) (text string, err error)
	help   string // for the API's description
	kind   string // of the value, for the API's description
}

// properties are those of openapi/v0.0.38 in Slurm 22.05 (slurmrestd's openapi.json). A
// member that is in no table is an error, because a misspelled one would be ignored.
var properties = []property{
	{"account", "account", text, "charged account", "string"},
	{"account_gather_frequency", "acctg-freq", text, "sampling intervals of accounting", "string"},
	{"array", "array", text, "indexes of an array", "string"},
	{"batch_features", "batch", text, "features of the node that runs the script", "string"},
	{"begin_time", "begin", instant, "earliest start in Unix seconds, or a time as for sbatch", "integer"},
	{"burst_buffer", "bb", text, "burst buffer", "string"},
	{"cluster_constraint", "cluster-constraint", text, "features of the cluster", "string"},
	{"comment", "comment", text, "comment", "string"},
	{"constraints", "constraint", text, "required features of nodes", "string"},
	{"container", "container", text, "OCI bundle", "string"},
	{"core_specification", "core-spec", number, "cores for the system", "integer"},
	{"cores_per_socket", "cores-per-socket", number, "cores of each socket", "integer"},
	{"cpu_binding_hint", "hint", text, "hint for the binding", "string"},
	{"cpu_frequency", "cpu-freq", text, "frequency of CPUs", "string"},
	{"cpus_per_gpu", "cpus-per-gpu", text, "CPUs for each GPU", "string"},
	{"cpus_per_task", "cpus-per-task", number, "CPUs for each task", "integer"},
	{"deadline", "deadline", instant, "latest end", "string"},
	{"delay_boot", "delay-boot", minutes, "minutes to wait before nodes are booted", "integer"},
	{"dependency", "dependency", text, "dependencies on other jobs", "string"},
	{"distribution", "distribution", text, "distribution of tasks over nodes", "string"},
	{"exclusive", "exclusive", exclusive, "whole nodes: true, false, user or mcs", "string"},
	{"get_user_environment", "get-user-env", flag, "login environment", "boolean"},
	{"gpu_binding", "gpu-bind", text, "binding of tasks to GPUs", "string"},
	{"gpu_frequency", "gpu-freq", text, "frequency of GPUs", "string"},
	{"gpus", "gpus", text, "GPUs of the job", "string"},
	{"gpus_per_node", "gpus-per-node", text, "GPUs of each node", "string"},
	{"gpus_per_socket", "gpus-per-socket", text, "GPUs for each socket", "string"},
	{"gpus_per_task", "gpus-per-task", text, "GPUs for each task", "string"},
	{"gres", "gres", text, "generic resources of each node", "string"},
	{"gres_flags", "gres-flags", text, "flags of generic resources", "string"},
	{"hold", "hold", flag, "submit in held state", "boolean"},
	{
		"kill_on_invalid_dependency", "kill-on-invalid-dep",
		yesNo,
		"end if a dependency can never be satisfied", "boolean",
	},
	{"licenses", "licenses", text, "licenses", "string"},
	{"mail_type", "mail-type", list, "events to send mail for", "string"},
	{"mail_user", "mail-user", text, "recipient of mail", "string"},
	{"mcs_label", "mcs-label", text, "MCS label", "string"},
	{"memory_binding", "mem-bind", text, "binding of tasks to memory", "string"},
	{"memory_per_cpu", "mem-per-cpu", number, "memory for each CPU in MiB", "integer"},
	{"memory_per_gpu", "mem-per-gpu", number, "memory for each GPU in MiB", "integer"},
	{"memory_per_node", "mem", number, "memory of each node in MiB", "integer"},
	{"minimum_cpus_per_node", "mincpus", number, "least CPUs of each node", "integer"},
	{"minimum_nodes", "use-min-nodes", flag, "prefer the least number of nodes", "boolean"},
	{"name", "job-name", text, "name of the job", "string"},
	{"nice", "nice", number, "adjustment of the priority", "integer"},
	{"no_kill", "no-kill", noKill, "continue when a node is lost", "boolean"},
	{"nodes", "nodes", nodeRange, "number of nodes, or the least and the greatest", "array"},
	{"open_mode", "open-mode", text, "append or truncate the output", "string"},
	{"oversubscribe", "oversubscribe", flag, "share nodes with other jobs", "boolean"},
	{"partition", "partition", text, "partitions, separated by commas", "string"},
	{"prefer", "prefer", text, "preferred features of nodes", "string"},
	{"priority", "priority", number, "priority (operators only)", "integer"},
	{"qos", "qos", text, "quality of service", "string"},
	{"requeue", "requeue", requeue, "requeue the job after a failure of a node", "boolean"},
	{"required_nodes", "nodelist", list, "nodes that the job must get", "array"},
	{"excluded_nodes", "exclude", list, "nodes that the job must not get", "array"},
	{"reservation", "reservation", text, "reservation", "string"},
	{"signal", "signal", text, "signal before the time limit, as for sbatch --signal", "string"},
	{"sockets_per_node", "sockets-per-node", number, "sockets of each node", "integer"},
	{"spread_job", "spread-job", flag, "spread the job over many nodes", "boolean"},
	{"standard_error", "error", text, "file for standard error", "string"},
	{"standard_input", "input", text, "file for standard input", "string"},
	{"standard_output", "output", text, "file for standard output", "string"},
	{"tasks", "ntasks", number, "number of tasks", "integer"},
	{"tasks_per_core", "ntasks-per-core", number, "tasks on each core", "integer"},
	{"tasks_per_node", "ntasks-per-node", number, "tasks on each node", "integer"},
	{"tasks_per_socket", "ntasks-per-socket", number, "tasks on each socket", "integer"},
	{"temporary_disk_per_node", "tmp", number, "local disk of each node in MiB", "integer"},
	{"thread_specification", "thread-spec", number, "threads for the system", "integer"},
	{"threads_per_core", "threads-per-core", number, "threads of each core to use", "integer"},
	{"time_limit", "time", minutes, "time limit in minutes", "integer"},
	{"time_minimum", "time-min", minutes, "least time limit in minutes", "integer"},
	{"wait_all_nodes", "wait-all-nodes", zeroOne, "wait until all nodes are ready", "boolean"},
	{"wckey", "wckey", text, "workload characterization key", "string"},
}

// later are the names that v0.0.39 and later have for properties, and properties that only
// these versions have.
var later = []property{
	{"minimum_cpus", "ntasks", number, "least number of CPUs", "integer"},
	{"minimum_nodes", "", number, "least number of nodes", "integer"},
	{"maximum_nodes", "", number, "greatest number of nodes", "integer"},
	{"ntasks_per_tres", "ntasks-per-gpu", number, "tasks for each GPU", "integer"},
	{"tres_per_job", "gres", tresCount, "generic resources of the job", "string"},
	{"tres_per_node", "gres", tresCount, "generic resources of each node", "string"},
	{"tres_per_task", "gpus-per-task", tresCount, "generic resources for each task", "string"},
	{"tres_per_socket", "gpus-per-socket", tresCount, "generic resources for each socket", "string"},
	{"extra", "extra", text, "text for other programs", "string"},
	{"contiguous", "contiguous", flag, "nodes that follow each other", "boolean"},
	{"exclusive", "exclusive", exclusiveList, "whole nodes: true, user or mcs", "array"},
	{"kill_on_node_fail", "no-kill", killOnFailure, "end when a node is lost", "boolean"},
	{"kill_warning_delay", "", minutes, "seconds from the signal to the time limit", "integer"},
	{"kill_warning_signal", "", text, "signal before the time limit", "string"},
	{"open_mode", "open-mode", list, "APPEND or TRUNCATE", "array"},
	{"overcommit", "overcommit", flag, "several tasks on a CPU", "boolean"},
	{"required_switches", "", number, "greatest number of leaf switches", "integer"},
	{"wait_for_switch", "", number, "seconds to wait for them", "integer"},
	{"nodelist", "nodelist", text, "nodes that the job must get", "string"},
	{"time_minutes", "time", minutes, "time limit in minutes", "integer"},
	{"network", "network", text, "network of the job", "string"},
}

// badValue is an error about the value of a property.
func badValue(v json.RawMessage, want string) error {
	return fmt.Errorf("%s expected, not %.40s", want, v)
}

// text returns a string; numbers and booleans are accepted as they are written, as
// programs quote them or not.
func text(v json.RawMessage) (string, error) {
	var s string
	if json.Unmarshal(v, &s) == nil {
		return s, nil
	}
	if len(v) > 0 && v[0] != '{' && v[0] != '[' && string(v) != "null" {
		return string(v), nil
	}
	return "", badValue(v, "a string")
}

// number returns a whole number. In later versions it is an object with "set",
// "infinite" and "number".
func number(v json.RawMessage) (string, error) {
	n, unlimited, err := parseNumber(v)
	switch {
	case err != nil || unlimited:
		return "", badValue(v, "a number")
	}
	return strconv.FormatInt(n, 10), nil
}

func parseNumber(v json.RawMessage) (n int64, unlimited bool, err error) {
	var o struct {
		Set      *bool
		Infinite bool
		Number   int64
	}
	if json.Unmarshal(v, &n) == nil {
		return n, false, nil
	}
	if json.Unmarshal(v, &o) == nil && len(v) > 0 && v[0] == '{' {
		return o.Number, o.Infinite, nil
	}
	s, err := text(v)
	if err != nil {
		return 0, false, err
	}
	n, err = strconv.ParseInt(s, 10, 64)
	return n, false, err
}

// minutes returns a time limit. A number is in minutes; a text is as for sbatch.
func minutes(v json.RawMessage) (string, error) {
	if n, unlimited, err := parseNumber(v); err == nil {
		if unlimited {
			return "UNLIMITED", nil
		}
		return strconv.FormatInt(n, 10), nil
	}
	return text(v)
}

// instant returns a point in time. A number is in Unix seconds; a text is as for sbatch.
func instant(v json.RawMessage) (string, error) {
	n, unlimited, err := parseNumber(v)
	if err != nil || unlimited {
		return text(v)
	}
	return time.Unix(n, 0).Format("2006-01-02T15:04:05"), nil
}

// list returns the elements of an array, or a text, separated by commas.
func list(v json.RawMessage) (string, error) {
	var items []string
	if json.Unmarshal(v, &items) == nil {
		return strings.Join(items, ","), nil
	}
	return text(v)
}

// nodeRange returns a number of nodes, from a number, a text such as "2-4", or an array of
// the least and the greatest number.
func nodeRange(v json.RawMessage) (string, error) {
	var items []int64
	if json.Unmarshal(v, &items) == nil && len(items) > 0 && len(items) <= 2 {
		least := strconv.FormatInt(items[0], 10)
		if len(items) == 1 {
			return least, nil
		}
		return least + "-" + strconv.FormatInt(items[1], 10), nil
	}
	return text(v)
}

// These values mean that an option is given without a value, or not given.
const (
	bare    = "\x00bare"
	omitted = "\x00omitted"
)

func boolean(v json.RawMessage) (bool, error) {
	var b bool
	if json.Unmarshal(v, &b) == nil {
		return b, nil
	}
	s, err := text(v)
	if err != nil {
		return false, err
	}
	switch strings.ToLower(s) {
	case "true", "yes", "1":
		return true, nil
	case "false", "no", "0", "":
		return false, nil
	}
	return false, badValue(v, "true or false")
}

// choose returns one of two values for a boolean.
func choose(v json.RawMessage, yes, no string) (string, error) {
	b, err := boolean(v)
	switch {
	case err != nil:
		return "", err
	case b:
		return yes, nil
	}
	return no, nil
}

func flag(v json.RawMessage) (string, error)    { return choose(v, bare, omitted) }
func yesNo(v json.RawMessage) (string, error)   { return choose(v, "yes", "no") }
func zeroOne(v json.RawMessage) (string, error) { return choose(v, "1", "0") }
func noKill(v json.RawMessage) (string, error)  { return choose(v, bare, "off") }

// requeue is --requeue or --no-requeue.
func requeue(v json.RawMessage) (string, error) { return choose(v, bare, negated) }

// negated means that the option is given with "no-" before its name.
const negated = "\x00negated"

// exclusive returns the value of --exclusive.
func exclusive(v json.RawMessage) (string, error) {
	if b, err := boolean(v); err == nil {
		if b {
			return bare, nil
		}
		return omitted, nil
	}
	return text(v)
}

// exclusiveList returns the value of --exclusive from an array.
func exclusiveList(v json.RawMessage) (string, error) {
	var items []string
	if json.Unmarshal(v, &items) != nil {
		return exclusive(v)
	}
	switch {
	case len(items) == 0 || slices.Contains(items, "false"):
		return omitted, nil
	case slices.Contains(items, "true"):
		return bare, nil
	}
	return strings.Join(items, ","), nil
}

// killOnFailure is --no-kill with the opposite meaning.
func killOnFailure(v json.RawMessage) (string, error) { return choose(v, omitted, bare) }

// tresCount returns a list of generic resources without the prefix that TRES have.
func tresCount(v json.RawMessage) (string, error) {
	s, err := list(v)
	items := strings.Split(s, ",")
	for i := range items {
		items[i] = strings.TrimPrefix(strings.TrimPrefix(items[i], "gres/"), "gres:")
	}
	return strings.Join(items, ","), err
}

// propertiesOf returns the table of the version of the API.
func propertiesOf(modern bool) []property {
	if !modern {
		return properties
	}
	replaced := func(p property) bool {
		return slices.ContainsFunc(later, func(l property) bool { return l.name == p.name })
	}
	return slices.Concat(slices.DeleteFunc(slices.Clone(properties), replaced), later)
}
