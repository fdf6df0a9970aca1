package sacctmgr

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/keyvalue"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/translate/value"
)

// limit is one of the limits: its names, and the field that holds it.
type limit struct {
	names []string // the first is the one that is shown
	tres  func(*status.Limits) *map[string]int64
	count func(*status.Limits) *int32
	wall  func(*status.Limits) *int32 // minutes
	only  string                      // the TRES that an older name stands for
}

var limits = []limit{
	{names: []string{"GrpTRES"}, tres: grpTRES},
	{names: []string{"GrpTRESMins"}, tres: grpTRESMins},
	{names: []string{"GrpTRESRunMins"}, tres: func(l *status.Limits) *map[string]int64 { return &l.GrpTRESRunMins }},
	{names: []string{"MaxTRES", "MaxTRESPerJob", "MaxTRESPJ"}, tres: maxTRES},
	{names: []string{"MaxTRESMins", "MaxTRESMinsPerJob", "MaxTRESMinsPJ"}, tres: maxTRESMins},
	{
		names: []string{"MaxTRESPerNode", "MaxTRESPN"},
		tres:  func(l *status.Limits) *map[string]int64 { return &l.MaxTRESPerNode },
	},
	{
		names: []string{"MaxTRESPU", "MaxTRESPerUser"},
		tres:  func(l *status.Limits) *map[string]int64 { return &l.MaxTRESUser },
	},
	{
		names: []string{"MaxTRESPA", "MaxTRESPerAccount"},
		tres:  func(l *status.Limits) *map[string]int64 { return &l.MaxTRESPerAccount },
	},
	{
		names: []string{"MinTRES", "MinTRESPerJob", "MinTRESPJ"},
		tres:  func(l *status.Limits) *map[string]int64 { return &l.MinTRES },
	},
	{names: []string{"GrpJobs"}, count: func(l *status.Limits) *int32 { return &l.GrpJobs }},
	{names: []string{"GrpSubmit", "GrpSubmitJobs"}, count: func(l *status.Limits) *int32 { return &l.GrpSubmitJobs }},
	{names: []string{"MaxJobs"}, count: func(l *status.Limits) *int32 { return &l.MaxJobs }},
	{names: []string{"MaxSubmitJobs", "MaxSubmit"}, count: func(l *status.Limits) *int32 { return &l.MaxSubmitJobs }},
	{names: []string{"MaxJobsPU", "MaxJobsPerUser"}, count: func(l *status.Limits) *int32 { return &l.MaxJobsPerUser }},
	{
		names: []string{"MaxSubmitPU", "MaxSubmitJobsPerUser", "MaxSubmitJobsPU"},
		count: func(l *status.Limits) *int32 { return &l.MaxSubmitJobsPerUser },
	},
	{
		names: []string{"MaxJobsPA", "MaxJobsPerAccount"},
		count: func(l *status.Limits) *int32 { return &l.MaxJobsPerAccount },
	},
	{
		names: []string{"MaxSubmitPA", "MaxSubmitJobsPerAccount", "MaxSubmitJobsPA"},
		count: func(l *status.Limits) *int32 { return &l.MaxSubmitJobsPerAccount },
	},
	{names: []string{"GrpWall"}, wall: func(l *status.Limits) *int32 { return &l.GrpWall }},
	{
		names: []string{"MaxWall", "MaxWallDurationPerJob", "MaxWallDuration"},
		wall:  func(l *status.Limits) *int32 { return &l.MaxWall },
	},
	{names: []string{"GrpCPUs"}, tres: grpTRES, only: "cpu"},
	{names: []string{"GrpNodes"}, tres: grpTRES, only: "node"},
	{names: []string{"GrpMemory", "GrpMem"}, tres: grpTRES, only: "mem"},
	{names: []string{"MaxCPUs", "MaxCPUsPerJob"}, tres: maxTRES, only: "cpu"},
	{names: []string{"MaxNodes", "MaxNodesPerJob"}, tres: maxTRES, only: "node"},
	{names: []string{"GrpCPUMins"}, tres: grpTRESMins, only: "cpu"},
	{names: []string{"MaxCPUMins", "MaxCPUMinsPerJob"}, tres: maxTRESMins, only: "cpu"},
}

func grpTRES(l *status.Limits) *map[string]int64 { return &l.GrpTRES }

func grpTRESMins(l *status.Limits) *map[string]int64 { return &l.GrpTRESMins }

func maxTRES(l *status.Limits) *map[string]int64 { return &l.MaxTRES }

func maxTRESMins(l *status.Limits) *map[string]int64 { return &l.MaxTRESMins }

// findLimit returns the limit of the name, or nil.
func findLimit(name string) *limit {
	for i := range limits {
		if slices.ContainsFunc(limits[i].names, func(n string) bool { return strings.EqualFold(n, name) }) {
			return &limits[i]
		}
	}
	return nil
}

// isFairshare reports whether the word sets the share of an association.
func isFairshare(p keyvalue.Pair) bool {
	return keyvalue.Abbreviates(p.Key, "Fairshare", 3) || keyvalue.Abbreviates(p.Key, "Shares", 3)
}

// setLimit sets a limit, the share or the priority. known is false if the key names
// none of them. line is the line to print for it.
func setLimit(l *status.Limits, p keyvalue.Pair) (line string, known bool, err error) {
	if isFairshare(p) {
		if l.Share, err = parseShare(p); err != nil {
			return "", true, err
		}
		return settingLine("Fairshare", p.Value), true, nil
	}
	if keyvalue.Abbreviates(p.Key, "Priority", 3) {
		n, err := parseLimit(p.Value)
		if err != nil {
			return "", true, invalidValue("Priority", p)
		}
		l.Priority = max(n, 0)
		return settingLine("Priority", p.Value), true, nil
	}
	x := findLimit(p.Key)
	if x == nil {
		return "", false, nil
	}
	var shown string
	switch {
	case x.tres != nil:
		shown, err = x.setTRES(l, p)
	case x.count != nil:
		shown, err = x.setCount(l, p)
	default:
		shown, err = x.setWall(l, p)
	}
	if err != nil {
		return "", true, err
	}
	return settingLine(x.names[0], shown), true, nil
}

func (x *limit) setTRES(l *status.Limits, p keyvalue.Pair) (shown string, err error) {
	text := p.Value
	if x.only != "" {
		text = x.only + "=" + text
	}
	var unknown tresError
	switch err := updateTRES(x.tres(l), text); {
	case errors.As(err, &unknown):
		return "", invalidOption(p, "sacctmgr: error: slurmdb_format_tres_str: %s", unknown)
	case err != nil:
		return "", invalidValue(x.names[0], p)
	}
	return text, nil
}

func (x *limit) setCount(l *status.Limits, p keyvalue.Pair) (shown string, err error) {
	n, err := parseLimit(p.Value)
	if err != nil || n > 1<<30 {
		return "", invalidValue(x.names[0], p)
	}
	*x.count(l) = int32(max(n, 0))
	return p.Value, nil
}

func (x *limit) setWall(l *status.Limits, p keyvalue.Pair) (shown string, err error) {
	minutes := int32(0)
	if p.Value != "-1" {
		if minutes, err = value.Minutes(p.Value); err != nil {
			return "", invalidOption(p, " Bad %s time format: %s", x.names[0], p.Text)
		}
		minutes = max(minutes, 0)
	}
	*x.wall(l) = minutes
	return wallText(minutes), nil
}

func parseShare(p keyvalue.Pair) (int64, error) {
	if strings.EqualFold(p.Value, "parent") {
		return status.FairshareParent, nil
	}
	n, err := parseLimit(p.Value)
	if err != nil || n >= status.FairshareParent {
		return 0, invalidValue("FairShare", p)
	}
	return max(n, 0), nil
}

// parseLimit parses a number; -1 removes a limit.
func parseLimit(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err == nil && n < -1 {
		err = value.ErrInvalid
	}
	return n, err
}

// updateTRES applies a list such as cpu=5,mem=1G,gres/gpu=2 to m; -1 removes a
// TRES.
func updateTRES(m *map[string]int64, list string) error {
	updated := maps.Clone(*m)
	for item := range strings.SplitSeq(list, ",") {
		name, n, err := parseTRES(item)
		switch {
		case err != nil:
			return err
		case n < 0:
			delete(updated, name)
		case updated == nil:
			updated = map[string]int64{name: n}
		default:
			updated[name] = n
		}
	}
	*m = updated
	if len(updated) == 0 {
		*m = nil
	}
	return nil
}

// parseTRES parses NAME=COUNT; memory may have a unit.
func parseTRES(item string) (name string, n int64, err error) {
	name, amount, hasAmount := strings.Cut(item, "=")
	name = strings.ToLower(name)
	switch {
	case name == "":
		return "", 0, value.ErrInvalid
	case !isTRES(name):
		return "", 0, tresError("no TRES known by type " + name)
	case !hasAmount:
		return "", 0, tresError("no TRES id found for " + name)
	}
	factor := int64(1)
	if name == "mem" || name == "vmem" {
		for i, unit := range []string{"M", "G", "T", "P"} {
			if rest, cut := strings.CutSuffix(strings.ToUpper(amount), unit); cut {
				amount, factor = rest, int64(1)<<(10*i)
			}
		}
	}
	if n, err = parseLimit(amount); n > 0 {
		n *= factor
	}
	return name, n, err
}

// tresError is Slurm's text about a list of TRES.
type tresError string

func (e tresError) Error() string { return string(e) }

func isTRES(name string) bool {
	kind, _, hasName := strings.Cut(name, "/")
	switch kind {
	case "cpu", "mem", "node", "billing", "energy", "vmem", "pages":
		return !hasName
	case "gres", "license", "fs", "bb", "ic":
		return hasName
	}
	return false
}

// tresOrder is the order of Slurm's numbers of TRES.
var tresOrder = []string{"cpu", "mem", "energy", "node", "billing"}

func tresText(m map[string]int64) string {
	var items []string
	for _, name := range tresOrder {
		if v, ok := m[name]; ok {
			items = append(items, tresItem(name, v))
		}
	}
	for _, name := range sortedNames(m) {
		if !slices.Contains(tresOrder, name) {
			items = append(items, tresItem(name, m[name]))
		}
	}
	return strings.Join(items, ",")
}

func tresItem(name string, v int64) string {
	if name != "mem" {
		return fmt.Sprintf("%s=%d", name, v)
	}
	unit := 0
	for unit < 3 && v > 0 && v%1024 == 0 {
		v, unit = v/1024, unit+1
	}
	return fmt.Sprintf("mem=%d%c", v, "MGTP"[unit])
}

func wallText(minutes int32) string {
	if minutes == 0 || minutes == job.Unlimited {
		return ""
	}
	if d := minutes / 1440; d > 0 {
		return fmt.Sprintf("%d-%02d:%02d:00", d, minutes/60%24, minutes%60)
	}
	return fmt.Sprintf("%02d:%02d:00", minutes/60, minutes%60)
}

// settingLine is the line that Slurm shows of a setting.
func settingLine(name, v string) string { return fmt.Sprintf("  %-13s = %s\n", name, v) }

func countText(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// shareText returns the share for a listing.
func shareText(share int64) string {
	switch share {
	case 0:
		return "1"
	case status.FairshareParent:
		return "parent"
	}
	return strconv.FormatInt(share, 10)
}

// limitText returns the value of a limit, of the share or of the priority for a
// listing; ok is false if name is none of them.
func limitText(l *status.Limits, name string) (text string, ok bool) {
	switch {
	case strings.EqualFold(name, "Share"):
		return shareText(l.Share), true
	case strings.EqualFold(name, "Priority"):
		return countText(l.Priority), true
	}
	x := findLimit(name)
	if x == nil {
		return "", false
	}
	return x.text(l), true
}

func (x *limit) text(l *status.Limits) string {
	switch {
	case x.only != "":
		if v, ok := (*x.tres(l))[x.only]; ok {
			return strconv.FormatInt(v, 10)
		}
		return ""
	case x.tres != nil:
		return tresText(*x.tres(l))
	case x.count != nil:
		return countText(int64(*x.count(l)))
	}
	return wallText(*x.wall(l))
}
