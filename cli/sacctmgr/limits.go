package sacctmgr

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/translate/value"
)

// limit is one of the limits: its names, and where it is kept.
type limit struct {
	names []string // the first is the one that is shown
	tres  func(*status.Limits) *map[string]int64
	count func(*status.Limits) *int32
	wall  func(*status.Limits) *int32
}

var limits = []limit{
	{names: []string{"GrpTRES"}, tres: func(l *status.Limits) *map[string]int64 { return &l.GrpTRES }},
	{names: []string{"GrpTRESMins"}, tres: func(l *status.Limits) *map[string]int64 { return &l.GrpTRESMins }},
	{names: []string{"GrpTRESRunMins"}, tres: func(l *status.Limits) *map[string]int64 { return &l.GrpTRESRunMins }},
	{names: []string{"MaxTRES", "MaxTRESPerJob", "MaxTRESPJ"}, tres: func(l *status.Limits) *map[string]int64 { return &l.MaxTRES }},
	{names: []string{"MaxTRESMins", "MaxTRESMinsPerJob", "MaxTRESMinsPJ"}, tres: func(l *status.Limits) *map[string]int64 { return &l.MaxTRESMins }},
	{names: []string{"MaxTRESPerNode", "MaxTRESPN"}, tres: func(l *status.Limits) *map[string]int64 { return &l.MaxTRESPerNode }},
	{names: []string{"MaxTRESPU", "MaxTRESPerUser"}, tres: func(l *status.Limits) *map[string]int64 { return &l.MaxTRESUser }},
	{names: []string{"MaxTRESPA", "MaxTRESPerAccount"}, tres: func(l *status.Limits) *map[string]int64 { return &l.MaxTRESPerAccount }},
	{names: []string{"MinTRES", "MinTRESPerJob", "MinTRESPJ"}, tres: func(l *status.Limits) *map[string]int64 { return &l.MinTRES }},
	{names: []string{"GrpJobs"}, count: func(l *status.Limits) *int32 { return &l.GrpJobs }},
	{names: []string{"GrpSubmit", "GrpSubmitJobs"}, count: func(l *status.Limits) *int32 { return &l.GrpSubmitJobs }},
	{names: []string{"MaxJobs"}, count: func(l *status.Limits) *int32 { return &l.MaxJobs }},
	{names: []string{"MaxSubmitJobs", "MaxSubmit"}, count: func(l *status.Limits) *int32 { return &l.MaxSubmitJobs }},
	{names: []string{"MaxJobsPU", "MaxJobsPerUser"}, count: func(l *status.Limits) *int32 { return &l.MaxJobsPerUser }},
	{names: []string{"MaxSubmitPU", "MaxSubmitJobsPerUser", "MaxSubmitJobsPU"}, count: func(l *status.Limits) *int32 { return &l.MaxSubmitJobsPerUser }},
	{names: []string{"MaxJobsPA", "MaxJobsPerAccount"}, count: func(l *status.Limits) *int32 { return &l.MaxJobsPerAccount }},
	{names: []string{"MaxSubmitPA", "MaxSubmitJobsPerAccount", "MaxSubmitJobsPA"}, count: func(l *status.Limits) *int32 { return &l.MaxSubmitJobsPerAccount }},
	{names: []string{"GrpWall"}, wall: func(l *status.Limits) *int32 { return &l.GrpWall }},
	{names: []string{"MaxWall", "MaxWallDurationPerJob", "MaxWallDuration"}, wall: func(l *status.Limits) *int32 { return &l.MaxWall }},
	// Older names for one TRES.
	{names: []string{"GrpCPUs"}, tres: func(l *status.Limits) *map[string]int64 { return &l.GrpTRES }},
	{names: []string{"GrpNodes"}, tres: func(l *status.Limits) *map[string]int64 { return &l.GrpTRES }},
	{names: []string{"GrpMemory", "GrpMem"}, tres: func(l *status.Limits) *map[string]int64 { return &l.GrpTRES }},
	{names: []string{"MaxCPUs", "MaxCPUsPerJob"}, tres: func(l *status.Limits) *map[string]int64 { return &l.MaxTRES }},
	{names: []string{"MaxNodes", "MaxNodesPerJob"}, tres: func(l *status.Limits) *map[string]int64 { return &l.MaxTRES }},
	{names: []string{"GrpCPUMins"}, tres: func(l *status.Limits) *map[string]int64 { return &l.GrpTRESMins }},
	{names: []string{"MaxCPUMins", "MaxCPUMinsPerJob"}, tres: func(l *status.Limits) *map[string]int64 { return &l.MaxTRESMins }},
}

// single is the TRES that an older name stands for.
var single = map[string]string{"GrpCPUs": "cpu", "GrpNodes": "node", "GrpMemory": "mem", "MaxCPUs": "cpu", "MaxNodes": "node", "GrpCPUMins": "cpu", "MaxCPUMins": "cpu"}

func limitCalled(key string) *limit {
	for i := range limits {
		for _, n := range limits[i].names {
			if strings.EqualFold(n, key) {
				return &limits[i]
			}
		}
	}
	return nil
}

// invalid is Slurm's refusal of a value, followed by that of the word.
func invalid(name string, p pair) error {
	return refusal(fmt.Sprintf("sacctmgr: error: Invalid value for %s (%s)\n Unknown option: %s\n Use keyword 'where' to modify condition", name, p.value, p.text))
}

// set sets a limit; known is false where the key names none. line is what is
// shown of it.
func setLimit(l *status.Limits, p pair) (line string, known bool, err error) {
	switch {
	case p.is("Fairshare", "Shares"):
		if l.Share, err = share(p); err != nil {
			return "", true, err
		}
		return setting("Fairshare", p.value), true, nil
	case oneOf(p.key, "Priority", 3):
		n, err := integer(p.value)
		if err != nil {
			return "", true, invalid("Priority", p)
		}
		l.Priority = max(n, 0)
		return setting("Priority", p.value), true, nil
	}
	x := limitCalled(p.key)
	if x == nil {
		return "", false, nil
	}
	name := x.names[0]
	switch {
	case x.tres != nil:
		v := p.value
		if t := single[name]; t != "" {
			v = t + "=" + v
		}
		var bad tresError
		if err := setTRES(x.tres(l), v); errors.As(err, &bad) {
			return "", true, refusal(fmt.Sprintf("sacctmgr: error: slurmdb_format_tres_str: %s\n Unknown option: %s\n Use keyword 'where' to modify condition", bad, p.text))
		} else if err != nil {
			return "", true, invalid(name, p)
		}
		return setting(name, v), true, nil
	case x.count != nil:
		n, err := integer(p.value)
		if err != nil || n > 1<<30 {
			return "", true, invalid(name, p)
		}
		*x.count(l) = int32(max(n, 0))
		return setting(name, p.value), true, nil
	}
	minutes := int32(0)
	if p.value != "-1" {
		if minutes, err = value.Minutes(p.value); err != nil {
			return "", true, refusal(fmt.Sprintf(" Bad %s time format: %[2]s\n Unknown option: %[2]s\n Use keyword 'where' to modify condition", name, p.text))
		}
		minutes = max(minutes, 0)
	}
	*x.wall(l) = minutes
	return setting(name, wallText(minutes)), true, nil
}

func share(p pair) (int64, error) {
	if strings.EqualFold(p.value, "parent") {
		return status.FairshareParent, nil
	}
	n, err := integer(p.value)
	if err != nil || n >= status.FairshareParent {
		return 0, invalid("FairShare", p)
	}
	return max(n, 0), nil
}

// integer reads a number; -1 takes a limit away.
func integer(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err == nil && n < -1 {
		err = value.ErrInvalid
	}
	return n, err
}

// setTRES reads cpu=5,mem=1G,gres/gpu=2 into m; -1 takes a TRES out.
func setTRES(m *map[string]int64, text string) error {
	now := map[string]int64{}
	for k, v := range *m {
		now[k] = v
	}
	for item := range strings.SplitSeq(text, ",") {
		name, amount, ok := strings.Cut(item, "=")
		name = strings.ToLower(name)
		switch {
		case name != "" && !ok && knownTRES(name):
			return tresError("no TRES id found for " + name)
		case name != "" && !knownTRES(name):
			return tresError("no TRES known by type " + name)
		case !ok || name == "":
			return value.ErrInvalid
		}
		factor := int64(1)
		if name == "mem" || name == "vmem" {
			for i, unit := range []string{"M", "G", "T", "P"} {
				if rest, cut := strings.CutSuffix(strings.ToUpper(amount), unit); cut {
					amount, factor = rest, int64(1)<<(10*i)
				}
			}
		}
		n, err := integer(amount)
		if err != nil {
			return err
		}
		if n < 0 {
			delete(now, name)
			continue
		}
		now[name] = n * factor
	}
	*m = now
	if len(now) == 0 {
		*m = nil
	}
	return nil
}

// tresError is Slurm's text about a list of TRES.
type tresError string

func (e tresError) Error() string { return string(e) }

func knownTRES(name string) bool {
	kind, _, sub := strings.Cut(name, "/")
	switch kind {
	case "cpu", "mem", "node", "billing", "energy", "vmem", "pages":
		return !sub
	case "gres", "license", "fs", "bb", "ic":
		return sub
	}
	return false
}

// tresOrder is by Slurm's numbers.
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

func setting(name, v string) string { return fmt.Sprintf("  %-13s = %s\n", name, v) }

func countText(n int32) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(int(n))
}

// limitText is the value of a limit for a listing.
func limitText(l *status.Limits, name string) (string, bool) {
	switch {
	case strings.EqualFold(name, "Share"):
		switch l.Share {
		case 0:
			return "1", true
		case status.FairshareParent:
			return "parent", true
		}
		return strconv.FormatInt(l.Share, 10), true
	case strings.EqualFold(name, "Priority"):
		if l.Priority == 0 {
			return "", true
		}
		return strconv.FormatInt(l.Priority, 10), true
	}
	x := limitCalled(name)
	switch {
	case x == nil:
		return "", false
	case x.tres != nil:
		m := *x.tres(l)
		if t := single[x.names[0]]; t != "" {
			if v, ok := m[t]; ok {
				return strconv.FormatInt(v, 10), true
			}
			return "", true
		}
		return tresText(m), true
	case x.count != nil:
		return countText(*x.count(l)), true
	}
	return wallText(*x.wall(l)), true
}
