package change

import (
	"slices"
	"strings"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/refusal"
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/translate/value"
)

// purgeDefault is how many seconds a reservation with PURGE_COMP stays unused
// before it is deleted, unless the flag has a value.
const purgeDefault = 300

// reservationFlag is a flag of a reservation as scontrol accepts it: a word that may
// be abbreviated, and the flag that it stands for.
type reservationFlag struct {
	word       string
	minLetters int
	flag       string // "": it stands for something that does not exist here
}

// reservationFlags are compared in this order, in which Slurm 22.05.8 resolves
// abbreviations.
var reservationFlags = []reservationFlag{
	{"MAINTENANCE", 3, "MAINT"},
	{"OVERLAP", 1, "OVERLAP"},
	{"FLEX", 1, "FLEX"},
	{"IGNORE_JOBS", 1, "IGNORE_JOBS"},
	{"HOURLY", 1, "HOURLY"},
	{"DAILY", 1, "DAILY"},
	{"WEEKDAY", 1, "WEEKDAY"},
	{"WEEKEND", 5, "WEEKEND"},
	{"WEEKLY", 5, "WEEKLY"},
	{"ANY_NODES", 1, "ANY_NODES"},
	{"LICENSE_ONLY", 1, "ANY_NODES"},
	{"STATIC_ALLOC", 1, "STATIC_ALLOC"},
	{"PART_NODES", 2, "PART_NODES"},
	{"PURGE_COMP", 2, "PURGE_COMP"},
	{"FIRST_CORES", 2, "FIRST_CORES"},
	{"TIME_FLOAT", 1, ""},
	{"REPLACE", 1, "REPLACE"},
	{"REPLACE_DOWN", 8, "REPLACE_DOWN"},
	{"NO_HOLD_JOBS_AFTER_END", 1, "NO_HOLD_JOBS_AFTER_END"},
	{"MAGNETIC", 3, "MAGNETIC"},
}

// flagOrder is the order in which Slurm lists the flags of a reservation.
var flagOrder = []string{
	"MAINT", "FLEX", "OVERLAP", "IGNORE_JOBS", "HOURLY", "DAILY", "WEEKDAY", "WEEKEND", "WEEKLY",
	"SPEC_NODES", "ALL_NODES", "ANY_NODES", "FIRST_CORES", "STATIC_ALLOC", "PART_NODES",
	"REPLACE", "REPLACE_DOWN", "PURGE_COMP", "NO_HOLD_JOBS_AFTER_END", "MAGNETIC",
}

func parseFlag(word string) (reservationFlag, bool) {
	for _, f := range reservationFlags {
		if len(word) >= f.minLetters && strings.HasPrefix(f.word, word) {
			return f, true
		}
	}
	return reservationFlag{}, false
}

// editResvFlags adds flags, or removes them (key flags-). As in Slurm, "=" adds to
// the flags of a reservation that exists, and its words may have a sign each.
func editResvFlags(c *reservationChange, key, v string) error {
	if v == "" {
		OrderFlags(c.s)
		return nil
	}
	for word := range strings.SplitSeq(v, ",") {
		remove := sign(key) == '-'
		if !c.isNew && word != "" && (word[0] == '+' || word[0] == '-') {
			remove = remove || word[0] == '-'
			word = word[1:]
		}
		name, argument, hasArgument := strings.Cut(strings.ToUpper(word), "=")
		f, ok := parseFlag(name)
		if !ok || hasArgument && f.flag != "PURGE_COMP" {
			return refuseCreation(status.CodeInvalidValue, "flags", v, "Error parsing flags "+v)
		}
		if err := c.editFlag(f.flag, argument, remove); err != nil {
			return err
		}
	}
	OrderFlags(c.s)
	return nil
}

// editFlag adds or removes one flag.
func (c *reservationChange) editFlag(flag, argument string, remove bool) error {
	s := c.s
	has := slices.Contains(s.Flags, flag)
	switch {
	case flag == "":
		return refusal.NotSupported
	case !c.isNew && strings.HasPrefix(flag, "REPLACE") && !has:
		return refusal.NotSupported
	case remove:
		s.Flags = without(s.Flags, flag)
		return nil
	case !has:
		s.Flags = append(s.Flags, flag)
	}
	if flag == "PURGE_COMP" {
		s.PurgeComp = purgeDefault
		if minutes, err := value.Minutes(argument); argument != "" && err == nil {
			s.PurgeComp = minutes * 60
		}
	}
	return nil
}

// OrderFlags sorts the flags of a reservation as Slurm lists them.
func OrderFlags(s *v1alpha1.ReservationSpec) {
	slices.SortStableFunc(
		s.Flags, func(a, b string) int { return slices.Index(flagOrder, a) - slices.Index(flagOrder, b) },
	)
}
