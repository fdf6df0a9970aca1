package change

import (
	"slices"
	"strings"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/refusal"
	"github.com/berth-hpc/berth/translate/value"
)

// resvFlag is a flag of a reservation as scontrol takes it: a name of which at
// least so many letters are needed, and the flag it stands for.
type resvFlag struct {
	typed  string
	least  int
	flag   string
	refuse bool // it means something that is not done here
}

// resvFlags are tried in this order, as Slurm 22.05.8 tells abbreviations apart
// (observed letter by letter).
var resvFlags = []resvFlag{
	{typed: "MAINTENANCE", least: 3, flag: "MAINT"},
	{typed: "OVERLAP", least: 1, flag: "OVERLAP"},
	{typed: "FLEX", least: 1, flag: "FLEX"},
	{typed: "IGNORE_JOBS", least: 1, flag: "IGNORE_JOBS"},
	{typed: "HOURLY", least: 1, flag: "HOURLY"},
	{typed: "DAILY", least: 1, flag: "DAILY"},
	{typed: "WEEKDAY", least: 1, flag: "WEEKDAY"},
	{typed: "WEEKEND", least: 5, flag: "WEEKEND"},
	{typed: "WEEKLY", least: 5, flag: "WEEKLY"},
	{typed: "ANY_NODES", least: 1, flag: "ANY_NODES"},
	{typed: "LICENSE_ONLY", least: 1, flag: "ANY_NODES"},
	{typed: "STATIC_ALLOC", least: 1, flag: "STATIC_ALLOC"},
	{typed: "PART_NODES", least: 2, flag: "PART_NODES"},
	{typed: "PURGE_COMP", least: 2, flag: "PURGE_COMP"},
	{typed: "FIRST_CORES", least: 2, flag: "FIRST_CORES"},
	{typed: "TIME_FLOAT", least: 1, refuse: true},
	{typed: "REPLACE", least: 1, flag: "REPLACE"},
	{typed: "REPLACE_DOWN", least: 8, flag: "REPLACE_DOWN"},
	{typed: "NO_HOLD_JOBS_AFTER_END", least: 1, flag: "NO_HOLD_JOBS_AFTER_END"},
	{typed: "MAGNETIC", least: 3, flag: "MAGNETIC"},
}

// flagOrder is how Slurm lists the flags of a reservation.
var flagOrder = []string{"MAINT", "FLEX", "OVERLAP", "IGNORE_JOBS", "HOURLY", "DAILY", "WEEKDAY", "WEEKEND", "WEEKLY", "SPEC_NODES", "ALL_NODES",
	"ANY_NODES", "FIRST_CORES", "STATIC_ALLOC", "PART_NODES", "REPLACE", "REPLACE_DOWN", "PURGE_COMP", "NO_HOLD_JOBS_AFTER_END", "MAGNETIC"}

func parseFlag(word string) (resvFlag, bool) {
	for _, f := range resvFlags {
		if len(word) >= f.least && strings.HasPrefix(f.typed, word) {
			return f, true
		}
	}
	return resvFlag{}, false
}

// editFlags adds flags, or takes them away (key flags-). Of a reservation that
// exists "=" adds as well, as in Slurm.
func editFlags(s *v1alpha1.ReservationSpec, key, v string, fresh bool) error {
	take := key[len(key)-1] == '-'
	for word := range strings.SplitSeq(v, ",") {
		if v == "" {
			break
		}
		sign := ""
		if !fresh && word != "" && (word[0] == '+' || word[0] == '-') {
			sign, word = word[:1], word[1:]
		}
		name, after, valued := strings.Cut(strings.ToUpper(word), "=")
		f, ok := parseFlag(name)
		switch {
		case !ok || valued && f.flag != "PURGE_COMP":
			return refusal.Text("Error parsing flags " + v + NoReservation)
		case f.refuse:
			return refusal.NotSupported
		case !fresh && strings.HasPrefix(f.flag, "REPLACE") && !slices.Contains(s.Flags, f.flag):
			return refusal.NotSupported
		case take || sign == "-":
			s.Flags = slices.DeleteFunc(s.Flags, func(has string) bool { return has == f.flag })
			continue
		case !slices.Contains(s.Flags, f.flag):
			s.Flags = append(s.Flags, f.flag)
		}
		if f.flag == "PURGE_COMP" {
			s.PurgeComp = 300
			if m, err := value.Minutes(after); after != "" && err == nil {
				s.PurgeComp = m * 60
			}
		}
	}
	OrderFlags(s)
	return nil
}

// OrderFlags puts the flags into the order in which Slurm lists them.
func OrderFlags(s *v1alpha1.ReservationSpec) {
	slices.SortStableFunc(s.Flags, func(a, b string) int { return slices.Index(flagOrder, a) - slices.Index(flagOrder, b) })
}
