package scontrol

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/build"
	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/translate/format"
)

// parameters maps the fields of a Cluster's spec to slurm.conf's names, with
// the unit that scontrol shows.
var parameters = map[string]struct{ name, unit string }{
	"clusterName": {"ClusterName", ""},
	"firstJobID":  {"FirstJobId", ""},
	"maxJobID":    {"MaxJobId", ""},
	"maxJobCount": {
		"MaxJobCount",
		"",
	},
	"minJobAgeSeconds": {"MinJobAge", " sec"},
	"killWaitSeconds":  {"KillWait", " sec"},
	"overTimeLimitMinutes": {
		"OverTimeLimit",
		" min",
	},
	"resvOverRunMinutes": {"ResvOverRun", " min"},
	"maxArraySize":       {"MaxArraySize", ""},
	"jobRequeue":         {"JobRequeue", ""},
	"requeueExit":        {"RequeueExit", ""},
	"requeueExitHold":    {"RequeueExitHold", ""},
	"enforcePartLimits": {
		"EnforcePartLimits",
		"",
	},
	"accountingStorageEnforce": {"AccountingStorageEnforce", ""},
	"defMemPerCPU":             {"DefMemPerCPU", ""},
	"defMemPerNode":            {"DefMemPerNode", ""},
	"maxMemPerCPU":             {"MaxMemPerCPU", ""},
	"maxMemPerNode":            {"MaxMemPerNode", ""},
	"privateData":              {"PrivateData", ""},
	"prolog": {
		"Prolog",
		"",
	},
	"epilog":     {"Epilog", ""},
	"taskProlog": {"TaskProlog", ""},
	"taskEpilog": {"TaskEpilog", ""},
	"srunProlog": {
		"SrunProlog",
		"",
	},
	"srunEpilog":                 {"SrunEpilog", ""},
	"prologEpilogTimeoutSeconds": {"PrologEpilogTimeout", ""},
	"propagateResourceLimits": {
		"PropagateResourceLimits",
		"",
	},
	"propagateResourceLimitsExcept": {"PropagateResourceLimitsExcept", ""},
	"rebootProgram":                 {"RebootProgram", ""},
	"slurmdTimeoutSeconds":          {"SlurmdTimeout", " sec"},
	"resumeTimeoutSeconds":          {"ResumeTimeout", " sec"},
}

// weights maps the keys of priorityWeights to slurm.conf's names.
var weights = map[string]string{"age": "Age", "fairshare": "FairShare", "jobsize": "JobSize",
	"partition": "Partition", "qos": "QOS", "assoc": "Assoc"}

// settings are the parameters in scontrol's order, with a place for each name.
type settings struct {
	list [][2]string
	at   map[string]int
}

func newSettings() *settings {
	s := &settings{list: slices.Clone(defaults), at: map[string]int{}}
	for i, kv := range s.list {
		s.at[strings.ToLower(kv[0])] = i
	}
	return s
}

// set sets the value of a parameter; a new one is inserted in alphabetical order.
func (s *settings) set(name, v string) {
	if i, ok := s.at[strings.ToLower(name)]; ok {
		s.list[i][1] = v
		return
	}
	s.list = append(s.list, [2]string{name, v})
	slices.SortStableFunc(s.list, func(a, b [2]string) int { return strings.Compare(order(a[0]), order(b[0])) })
	for i, kv := range s.list {
		s.at[strings.ToLower(kv[0])] = i
	}
}

// order returns the sort key of a name.
func order(name string) string { return strings.ToLower(name) }

// configLines are the pairs of scontrol show config.
func configLines(info map[string]any, s *format.Settings, server string) [][2]string {
	spec := info
	if inner, ok := info["spec"].(map[string]any); ok {
		spec = inner
	}
	out := newSettings()
	out.set("SLURM_VERSION", build.Slurm)
	host, port, err := net.SplitHostPort(server)
	if err != nil {
		host, port = server, "443"
	}
	out.set("SlurmctldHost[0]", host)
	out.set("SlurmctldPort", port)
	boot, _ := info["boot"].(float64) // absent: unknown
	out.set("BOOT_TIME", string(format.AppendInstant(nil, int64(boot), "N/A", s)))
	next, _ := info["nextJobID"].(float64)
	out.set("NEXT_JOB_ID", strconv.FormatInt(int64(next), 10))
	if more, ok := spec["parameters"].(map[string]any); ok {
		for _, name := range sortedKeys(more) {
			v := text(more[name])
			switch strings.ToLower(name) {
			case "accountingstoragetres":
				v = withOwnTRES(v)
			case "selecttypeparameters":
				v = strings.ToUpper(v)
			}
			out.set(name, v)
		}
	}
	if _, set := spec["propagateResourceLimitsExcept"]; set {
		out.set("PropagateResourceLimits", "(null)")
	}
	for _, field := range sortedKeys(spec) {
		if p, ok := parameters[field]; ok {
			out.set(p.name, text(spec[field])+p.unit)
		}
	}
	if t, ok := spec["topology"].(map[string]any); ok {
		kind, _ := t["type"].(string)
		out.set("TopologyPlugin", "topology/"+cmp.Or(kind, "tree"))
	}
	if w, ok := spec["priorityWeights"].(map[string]any); ok {
		for _, key := range sortedKeys(w) {
			out.set("PriorityWeight"+cmp.Or(weights[key], key), text(w[key]))
		}
	}
	return out.list
}

// ownTRES are counted always.
const ownTRES = "cpu,mem,energy,node,billing,fs/disk,vmem,pages"

// withOwnTRES returns the list of tracked TRES, including those that are always
// tracked.
func withOwnTRES(list string) string {
	all := strings.Split(ownTRES, ",")
	for name := range strings.SplitSeq(list, ",") {
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return strings.Join(all, ",")
}

func sortedKeys(m map[string]any) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// text shows a JSON value as slurm.conf would.
func text(v any) string {
	switch v := v.(type) {
	case bool:
		if v {
			return "1"
		}
		return "0"
	case float64:
		return fmt.Sprintf("%.0f", v)
	case []any:
		words := make([]string, len(v))
		for i := range v {
			words[i] = text(v[i])
		}
		return strings.Join(words, ",")
	}
	return fmt.Sprint(v)
}

// hostOf returns the host of an address with a port, or the address.
func hostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}

// showConfig prints the configuration as Key = value lines.
func showConfig(ctx context.Context, o *Options, c Cluster, _ []string) error {
	info, err := c.ClusterInfo(ctx)
	if err != nil {
		return err
	}
	s := o.settings(0)
	var out strings.Builder
	out.WriteString("Configuration data as of " + string(format.AppendInstant(nil, s.Now, "", s)) + "\n")
	for _, kv := range configLines(info, s, c.Server()) {
		fmt.Fprintf(&out, "%-23s = %s\n", kv[0], printable.Escape(kv[1]))
	}
	out.WriteString(mpiPlugins + "\nSlurmctld(primary) at " + hostOf(c.Server()) + " is UP\n")
	return o.p.Print(out.String())
}
