package sreport

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/status"
)

// sizeReport is a report on the sizes of jobs.
type sizeReport struct {
	title  string
	column string // the header of the first column
	width  int    // negative: aligned to the left
	// keys returns the rows in which a job counts.
	keys func(*status.Usage) []string
}

func (o *Options) sizesByAccount(d *data) error {
	o.reportUnknownUsers(d)
	return o.sizes(d, &sizeReport{"Job Sizes", "Account", 9, func(u *status.Usage) []string {
		switch {
		case o.flat:
			return []string{u.Account}
		case len(o.accounts) > 0:
			return d.lineage(u.Account)
		}
		return []string{rootAccount}
	}})
}

func (o *Options) sizesByWCKey(d *data) error {
	o.hideWCKeys(d)
	return o.sizes(d, &sizeReport{"Job Sizes by Wckey", "Wckey", 9, func(u *status.Usage) []string {
		return []string{u.WCKey}
	}})
}

// sizesByAccountAndWCKey prints a row for each account and wckey. It does not count jobs
// without a wckey.
func (o *Options) sizesByAccountAndWCKey(d *data) error {
	o.hideWCKeys(d)
	return o.sizes(d, &sizeReport{"Job Sizes", "Account", -20, func(u *status.Usage) []string {
		if u.WCKey == "" {
			return nil
		}
		return []string{u.Account + ":" + u.WCKey}
	}})
}

// hideWCKeys removes all usage from a report by wckeys unless the caller is an operator.
// As in Slurm, the report is printed all the same, and unknown users are reported before.
func (o *Options) hideWCKeys(d *data) {
	o.reportUnknownUsers(d)
	if !d.operator {
		d.Items = nil
		fmt.Fprintln(o.p.Err, noPrivilege)
	}
}

// sizes prints the sums of jobs by the number of their CPUs.
func (o *Options) sizes(d *data, report *sizeReport) error {
	if len(o.tres) > 1 {
		fmt.Fprint(o.p.Err, " Job report only supports a single --tres type.\n"+
			" Generate a separate report for each TRES type.\n")
		return failed()
	}
	unit := "Time reported in " + o.unit.name
	if o.tresGiven || o.tres[0] != "cpu" {
		unit = "TRES type is " + cmp.Or(o.tresTyped, o.tres[0]) + "\n" + unit
	}
	if o.countJobs {
		unit = "Units are in number of jobs ran"
	}
	if err := o.printTitle(report.title, unit, true); err != nil {
		return err
	}
	table := o.sizeTable(report)
	sums, total := o.sumBySize(d, report)
	var rows []map[string]string
	for _, k := range slices.Sorted(maps.Keys(sums)) {
		row := map[string]string{"Cluster": d.Cluster, report.column: k}
		var all int64
		for i, n := range sums[k] {
			all += n
			row[table[i+2].Name] = o.sizeText(n)
		}
		row["% of cluster"] = fmt.Sprintf("%.2f%%", 100*float64(all)/float64(max(1, total)))
		rows = append(rows, row)
	}
	var usual []string
	for _, f := range table {
		usual = append(usual, f.Name)
	}
	return o.print(table, strings.Join(usual, ","), rows)
}

// reportUnknownUsers prints Slurm's errors about unknown users.
func (o *Options) reportUnknownUsers(d *data) {
	for _, name := range o.users {
		if o.isUnknownUser(d, name) {
			unknown := slurmerr.New(slurmerr.Refused, "Invalid user id: "+printable.Escape(name))
			slurmerr.Print(o.p.Err, "sreport", unknown)
		}
	}
}

// isUnknownUser reports whether a name of users= is neither that of a user nor a number.
func (o *Options) isUnknownUser(d *data, name string) bool {
	_, err := strconv.ParseInt(name, 10, 64)
	return err != nil && name != "" && !slices.Contains(d.users, name)
}

func (o *Options) sizeTable(report *sizeReport) []format.Field {
	table := []format.Field{{Name: "Cluster", Width: 9},
		{Name: report.column, Width: max(report.width, -report.width), Left: report.width < 0}}
	low, what := int32(0), "CPUs"
	if o.tres[0] != "cpu" {
		what = "TRES"
	}
	for _, bound := range o.grouping {
		table = append(table, format.Field{Name: fmt.Sprintf("%d-%d %s", low, bound-1, what), Width: 13})
		low = bound
	}
	return append(table,
		format.Field{Name: fmt.Sprintf(">= %d %s", low, what), Width: 13},
		format.Field{Name: "% of cluster", Width: 12})
}

func (o *Options) sizeText(n int64) string {
	if o.countJobs {
		return fmt.Sprint(n)
	}
	return unit{seconds: o.unit.seconds, amount: true}.show(n, 0)
}

// sumBySize returns, by the key of a row, the CPU time or the number of jobs in
// each class of sizes, and the total over all jobs.
func (o *Options) sumBySize(d *data, report *sizeReport) (sums map[string][]int64, total int64) {
	sums = map[string][]int64{}
	for i := range d.Items {
		u := &d.Items[i]
		class, _ := slices.BinarySearchFunc(
			o.grouping,
			o.sizeOf(u),
			func(bound, n int32) int { return cmp.Compare(bound, n+1) },
		)
		amount := u.TRES[o.tres[0]]
		if o.countJobs {
			amount = max(1, u.Jobs)
		}
		total += amount
		for _, k := range report.keys(u) {
			if report.column == "Account" && !o.wantsAccount(k) {
				continue
			}
			if sums[k] == nil {
				sums[k] = make([]int64, len(o.grouping)+1)
			}
			sums[k][class] += amount
		}
	}
	return sums, total
}

// wantsAccount reports whether accounts= names the account of a row's key.
func (o *Options) wantsAccount(key string) bool {
	account, _, _ := strings.Cut(key, ":")
	return len(o.accounts) == 0 || slices.Contains(o.accounts, account)
}

// sizeOf returns how much of the report's TRES a job had.
func (o *Options) sizeOf(u *status.Usage) int32 {
	if seconds := u.TRES["cpu"]; o.tres[0] != "cpu" && seconds > 0 {
		return int32(min(math.MaxInt32-1, u.TRES[o.tres[0]]*int64(u.CPUs)/seconds))
	}
	return u.CPUs
}
