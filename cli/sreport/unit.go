package sreport

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/keyvalue"
	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/status"
)

// unit is a format of amounts.
type unit struct {
	name    string // "Minutes"
	seconds float64
	amount  bool // show the amount
	percent bool // show its percentage of the total
}

var units = []struct {
	key string
	unit
}{
	{
		"seconds",
		unit{"Seconds", 1, true, false},
	},
	{"minutes", unit{"Minutes", 60, true, false}},
	{"hours", unit{"Hours", 3600, true, false}},
	{
		"percent",
		unit{"Percentage of Total", 1, false, true},
	},
	{"secper", unit{"Seconds/Percentage of Total", 1, true, true}},
	{
		"minper",
		unit{"Minutes/Percentage of Total", 60, true, true},
	},
	{"hourper", unit{"Hours/Percentage of Total", 3600, true, true}},
}

// show formats an amount of TRES-seconds out of total.
func (u unit) show(amount, total int64) string {
	number := strconv.FormatFloat(float64(amount)/u.seconds, 'f', 0, 64)
	part := 0.0
	if total > 0 {
		part = 100 * float64(amount) / float64(total)
	}
	switch {
	case u.amount && u.percent:
		return fmt.Sprintf("%s(%.2f%%)", number, part)
	case u.percent:
		return fmt.Sprintf("%.2f%%", part)
	}
	return number
}

// setUnit selects a unit by its name or a prefix of it. As in Slurm, an unknown name is
// printed, without the end of the line, and ignored.
func (o *Options) setUnit(name string) {
	var found *unit
	for i := range units {
		switch u := &units[i]; {
		case strings.EqualFold(u.key, name):
			o.unit = u.unit
			return
		case found == nil && keyvalue.Abbreviates(name, u.key, 1):
			found = &u.unit
		}
	}
	if found == nil {
		fmt.Fprintf(o.p.Err, "unknown time format %s", printable.Escape(name))
		return
	}
	o.unit = *found
}

// filterTRES replaces "all" by the TRES of the cluster, and removes those that the
// cluster does not have.
func (o *Options) filterTRES(d *data) error {
	if slices.ContainsFunc(o.tres, func(name string) bool { return strings.EqualFold(name, "all") }) {
		o.tres = slices.Clone(usualTRES)
		for _, name := range slices.Sorted(maps.Keys(d.Capacity)) {
			if !slices.Contains(usualTRES, name) {
				o.tres = append(o.tres, name)
			}
		}
	}
	o.tres = slices.DeleteFunc(slices.Clone(o.tres), func(name string) bool {
		if _, has := d.Capacity[name]; has || name == "gres/gpu" || slices.Contains(usualTRES, name) {
			return false
		}
		return !slices.ContainsFunc(d.Items, func(u status.Usage) bool { return u.TRES[name] > 0 })
	})
	if len(o.tres) == 0 {
		return slurmerr.New(slurmerr.Fatal, "No valid TRES given")
	}
	return nil
}

// usualTRES are the TRES of every cluster.
var usualTRES = []string{"cpu", "mem", "energy", "node", "billing", "fs/disk", "vmem", "pages"}
