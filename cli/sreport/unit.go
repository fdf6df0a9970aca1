package sreport

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/status"
)

// unit is how amounts are shown.
type unit struct {
	name    string // "Minutes"
	seconds float64
	amount  bool // show the amount
	percent bool // show its part of the whole
}

var units = []struct {
	key string
	unit
}{
	{"seconds", unit{"Seconds", 1, true, false}}, {"minutes", unit{"Minutes", 60, true, false}}, {"hours", unit{"Hours", 3600, true, false}},
	{"percent", unit{"Percentage of Total", 1, false, true}}, {"secper", unit{"Seconds/Percentage of Total", 1, true, true}},
	{"minper", unit{"Minutes/Percentage of Total", 60, true, true}}, {"hourper", unit{"Hours/Percentage of Total", 3600, true, true}},
}

// show writes an amount of TRES-seconds out of whole.
func (u unit) show(amount, whole int64) string {
	number := strconv.FormatFloat(float64(amount)/u.seconds, 'f', 0, 64)
	part := 0.0
	if whole > 0 {
		part = 100 * float64(amount) / float64(whole)
	}
	switch {
	case u.amount && u.percent:
		return fmt.Sprintf("%s(%.2f%%)", number, part)
	case u.percent:
		return fmt.Sprintf("%.2f%%", part)
	}
	return number
}

// setUnit takes the name of a unit or a beginning of it. Slurm reports in the
// usual one where there is none of that name, and says so.
func (o *Options) setUnit(name string) {
	i := slices.IndexFunc(units, func(u struct {
		key string
		unit
	}) bool {
		return begins(name, u.key, 1)
	})
	for k := range units {
		if strings.EqualFold(units[k].key, name) {
			i = k
		}
	}
	if i < 0 {
		fmt.Fprintf(o.p.Err, "unknown time format %s\n", format.Escape(name))
		return
	}
	o.unit = units[i].unit
}

// knownTRES leaves out what is no TRES of this cluster.
func (o *Options) knownTRES(d *data) error {
	if slices.ContainsFunc(o.tres, func(name string) bool { return strings.EqualFold(name, "all") }) {
		o.tres = slices.Clone(usualTRES)
		for _, name := range slices.Sorted(maps.Keys(d.Capacity)) {
			if !slices.Contains(usualTRES, name) {
				o.tres = append(o.tres, name)
			}
		}
	}
	o.tres = slices.DeleteFunc(slices.Clone(o.tres), func(name string) bool {
		if _, has := d.Capacity[name]; has || slices.Contains(usualTRES, name) {
			return false
		}
		return !slices.ContainsFunc(d.Items, func(u status.Usage) bool { return u.TRES[name] > 0 })
	})
	if len(o.tres) == 0 {
		return slurmerr.New(slurmerr.Fatal, "No valid TRES given")
	}
	return nil
}

// usualTRES are those that every cluster has.
var usualTRES = []string{"cpu", "mem", "energy", "node", "billing", "fs/disk", "vmem", "pages"}
