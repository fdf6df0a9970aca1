package sreport

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/status"
)

func (o *Options) table() []format.Field {
	used := 8
	if o.unit.amount && o.unit.percent {
		used = 17
	}
	account := format.Field{Name: "Account", Width: 15}
	if o.tree {
		account.Width, account.Left = 20, true
	}
	return []format.Field{{Name: "Cluster", Width: 9}, account, {Name: "Login", Width: 9}, {Name: "Proper Name", Width: 15},
		{Name: "WCKey", Width: 15}, {Name: "TRES Name", Width: 14}, {Name: "Used", Width: used}, {Name: "Energy", Width: 8}}
}

// columns completes a report's usual columns: the name of the TRES where more
// than CPU is asked for, else energy, of which nothing is known here.
func (o *Options) columns(front string, energy bool) string {
	if len(o.tres) > 1 || o.tres[0] != "cpu" {
		return front + ",TRES Name,Used"
	}
	if energy {
		return front + ",Used,Energy"
	}
	return front + ",Used"
}

// lines makes the lines of one account, user or key: one for each TRES.
func (o *Options) lines(d *data, names map[string]string, used map[string]int64) []map[string]string {
	var out []map[string]string
	for _, t := range o.tres {
		r := map[string]string{"Cluster": d.Cluster, "TRES Name": t, "Used": o.unit.show(used[t], d.whole(t)), "Energy": o.unit.show(0, 1)}
		for k, v := range names {
			r[k] = v
		}
		out = append(out, r)
	}
	return out
}

// properName is the user's name in this machine's list of users.
func (o *Options) properName(user string) string {
	data, err := o.p.ReadFile("/etc/passwd")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(data)) {
		if f := strings.Split(line, ":"); len(f) > 4 && f[0] == user {
			name, _, _ := strings.Cut(f[4], ",")
			return name
		}
	}
	return ""
}

func add(to map[string]int64, from map[string]int64) map[string]int64 {
	if to == nil {
		to = map[string]int64{}
	}
	for k, v := range from {
		to[k] += v
	}
	return to
}

func (o *Options) accountByUser(d *data) error {
	if err := o.head("Cluster/Account/User Utilization", o.usageUnit(), true); err != nil {
		return err
	}
	totals := map[string]map[string]int64{}
	users := map[string]map[string]map[string]int64{}
	for _, u := range d.Items {
		if u.TRES["cpu"]+u.TRES["mem"]+u.TRES["node"] == 0 {
			continue
		}
		for _, a := range d.above(u.Account) {
			totals[a] = add(totals[a], u.TRES)
		}
		if users[u.Account] == nil {
			users[u.Account] = map[string]map[string]int64{}
		}
		users[u.Account][u.User] = add(users[u.Account][u.User], u.TRES)
	}
	var rows []map[string]string
	for _, a := range o.order(d, totals) {
		if len(o.accounts) > 0 && !slices.Contains(o.accounts, a) {
			continue
		}
		indent := ""
		if o.tree {
			indent = strings.Repeat(" ", len(d.above(a))-1)
		}
		rows = append(rows, o.lines(d, map[string]string{"Account": indent + a}, totals[a])...)
		for _, u := range sortedKeys(users[a]) {
			shown := indent + a
			if o.tree {
				shown = indent + " " + a
				if a == root {
					shown = " " + root
				}
			}
			rows = append(rows, o.lines(d, map[string]string{"Account": shown, "Login": u, "Proper Name": o.properName(u)}, users[a][u])...)
		}
	}
	return o.print(o.table(), o.columns("Cluster,Account,Login,Proper Name", true), rows)
}

// order is that of the tree: an account, then those below it.
func (o *Options) order(d *data, totals map[string]map[string]int64) []string {
	path := func(a string) string {
		up := d.above(a)
		slices.Reverse(up)
		return strings.Join(up, "\x00")
	}
	out := sortedKeys(totals)
	slices.SortFunc(out, func(a, b string) int { return cmp.Compare(path(a), path(b)) })
	return out
}

func sortedKeys[T any](m map[string]T) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// byUser are the sums of each user and of what other names it by, users with
// most CPU first.
func (o *Options) byUser(d *data, other func(*status.Usage) string) []status.Usage {
	type key struct{ user, other string }
	sums := map[key]*status.Usage{}
	total := map[string]int64{}
	for i := range d.Items {
		u := &d.Items[i]
		if len(o.accounts) > 0 && !slices.Contains(o.accounts, u.Account) || len(u.TRES) == 0 {
			continue
		}
		k := key{u.User, other(u)}
		if sums[k] == nil {
			sums[k] = &status.Usage{User: u.User, Account: u.Account, WCKey: u.WCKey, TRES: map[string]int64{}}
		} else if !slices.Contains(strings.Split(sums[k].Account, ","), u.Account) {
			sums[k].Account += "," + u.Account
		}
		add(sums[k].TRES, u.TRES)
		total[u.User] += u.TRES["cpu"]
	}
	var out []status.Usage
	for _, u := range sums {
		if u.TRES["cpu"]+u.TRES["mem"]+u.TRES["node"] > 0 {
			out = append(out, *u)
		}
	}
	slices.SortFunc(out, func(a, b status.Usage) int {
		return cmp.Or(cmp.Compare(total[b.User], total[a.User]), cmp.Compare(a.User, b.User), cmp.Compare(b.TRES["cpu"], a.TRES["cpu"]), cmp.Compare(a.Account, b.Account), cmp.Compare(a.WCKey, b.WCKey))
	})
	return out
}

func (o *Options) userRows(d *data, list []status.Usage) []map[string]string {
	var rows []map[string]string
	for _, u := range list {
		rows = append(rows, o.lines(d, map[string]string{"Account": u.Account, "Login": u.User, "Proper Name": o.properName(u.User), "WCKey": u.WCKey}, u.TRES)...)
	}
	return rows
}

func (o *Options) userByAccount(d *data) error {
	if err := o.head("Cluster/User/Account Utilization", o.usageUnit(), true); err != nil {
		return err
	}
	list := o.byUser(d, func(u *status.Usage) string { return u.Account })
	return o.print(o.table(), o.columns("Cluster,Login,Proper Name,Account", true), o.userRows(d, list))
}

func (o *Options) userByWCKey(d *data) error {
	if err := o.head("Cluster/User/WCKey Utilization", o.usageUnit(), true); err != nil {
		return err
	}
	list := slices.DeleteFunc(o.byUser(d, func(u *status.Usage) string { return u.WCKey }), func(u status.Usage) bool { return u.WCKey == "" })
	return o.print(o.table(), o.columns("Cluster,Login,Proper Name,WCKey", false), o.userRows(d, list))
}

func (o *Options) wckeyByUser(d *data) error {
	if err := o.head("Cluster/WCKey/User Utilization", o.usageUnit(), true); err != nil {
		return err
	}
	list := slices.DeleteFunc(o.byUser(d, func(u *status.Usage) string { return u.WCKey }), func(u status.Usage) bool { return u.WCKey == "" })
	slices.SortStableFunc(list, func(a, b status.Usage) int { return cmp.Compare(a.WCKey, b.WCKey) })
	return o.print(o.table(), o.columns("Cluster,WCKey,Login,Proper Name", false), o.userRows(d, list))
}

func (o *Options) topUsage(d *data) error {
	if err := o.head(fmt.Sprintf("Top %d Users", o.top), o.usageUnit(), true); err != nil {
		return err
	}
	list := o.byUser(d, func(u *status.Usage) string {
		if o.group {
			return ""
		}
		return u.Account
	})
	var seen []string
	list = slices.DeleteFunc(list, func(u status.Usage) bool {
		if !slices.Contains(seen, u.User) {
			seen = append(seen, u.User)
		}
		return len(seen) > o.top
	})
	return o.print(o.table(), o.columns("Cluster,Login,Proper Name,Account", true), o.userRows(d, list))
}

// utilization is of the capacity that the cluster has now: what it had then is
// not kept.
func (o *Options) utilization(d *data) error {
	if err := o.head("Cluster Utilization", o.usageUnit(), false); err != nil {
		return err
	}
	width := 8
	if o.unit.amount && o.unit.percent {
		width = 17
	}
	table := []format.Field{{Name: "Cluster", Width: 9}, {Name: "TRES Name", Width: 14}}
	for _, n := range []string{"Allocated", "Down", "PLND Down", "Idle", "Planned", "Reported", "Over Comm"} {
		table = append(table, format.Field{Name: n, Width: width})
	}
	table = append(table, format.Field{Name: "TRES Count", Width: 10})
	if o.chosen && slices.Contains(o.tres, "node") {
		return slurmerr.New(slurmerr.Fatal, "TRES node usage is no longer reported in the Cluster Utilization report.  Please use TRES CPU instead.")
	}
	var rows []map[string]string
	for _, t := range o.tres {
		var used, waiting int64
		for _, u := range d.Items {
			used += u.TRES[t]
			if t == "cpu" {
				waiting += u.Waiting
			}
		}
		whole := max(d.whole(t), used)
		if whole == 0 && d.whole("cpu") == 0 {
			continue // the cluster was not there
		}
		down := min(d.Down[t], whole-used)
		planned := min(waiting, whole-used-down)
		rows = append(rows, map[string]string{
			"Cluster": d.Cluster, "TRES Name": t, "Allocated": o.unit.show(used, whole), "Down": o.unit.show(down, whole), "PLND Down": o.unit.show(0, whole),
			"Planned": o.unit.show(planned, whole), "Idle": o.unit.show(whole-used-down-planned, whole), "Reported": o.unit.show(whole, whole),
			"Over Comm": o.unit.show(0, whole), "TRES Count": strconv.FormatInt(d.Capacity[t], 10),
		})
	}
	usual := "Cluster,Allocated,Down,PLND Down,Idle,Planned,Reported"
	if o.listed {
		usual = "Cluster,TRES Name,Allocated,Down,PLND Down,Idle,Planned,Reported"
	}
	return o.print(table, usual, rows)
}

func (o *Options) sizesByAccount(d *data) error {
	return o.sizes(d, "Job Sizes", "Account", 9, func(u *status.Usage) []string {
		switch {
		case o.flat:
			return []string{u.Account}
		case len(o.accounts) > 0:
			return d.above(u.Account)
		}
		return []string{root}
	})
}

func (o *Options) sizesByWCKey(d *data) error {
	return o.sizes(d, "Job Sizes by Wckey", "Wckey", 9, func(u *status.Usage) []string { return []string{u.WCKey} })
}

// sizesByBoth has a line for each account and wckey; jobs without one are in none.
func (o *Options) sizesByBoth(d *data) error {
	return o.sizes(d, "Job Sizes", "Account", 20, func(u *status.Usage) []string {
		if u.WCKey == "" {
			return nil
		}
		return []string{u.Account + ":" + u.WCKey}
	})
}

// sizes sums jobs by how many CPUs they had.
func (o *Options) sizes(d *data, title, what string, width int, keys func(*status.Usage) []string) error {
	line := "Time reported in " + o.unit.name
	if o.count {
		line = "Units are in number of jobs ran"
	}
	if err := o.head(title, line, true); err != nil {
		return err
	}
	table := []format.Field{{Name: "Cluster", Width: 9}, {Name: what, Width: width}}
	low := int32(0)
	for _, g := range o.grouping {
		table = append(table, format.Field{Name: fmt.Sprintf("%d-%d CPUs", low, g-1), Width: 13})
		low = g
	}
	table = append(table, format.Field{Name: fmt.Sprintf(">= %d CPUs", low), Width: 13}, format.Field{Name: "% of cluster", Width: 12})
	sums := map[string][]int64{}
	var total int64
	for i := range d.Items {
		u := &d.Items[i]
		class, _ := slices.BinarySearchFunc(o.grouping, u.CPUs, func(g, n int32) int { return cmp.Compare(g, n+1) })
		amount := u.TRES["cpu"]
		if o.count {
			amount = max(1, u.Jobs)
		}
		total += amount
		for _, k := range keys(u) {
			if account, _, _ := strings.Cut(k, ":"); what == "Account" && len(o.accounts) > 0 && !slices.Contains(o.accounts, account) {
				continue
			}
			if sums[k] == nil {
				sums[k] = make([]int64, len(o.grouping)+1)
			}
			sums[k][class] += amount
		}
	}
	var rows []map[string]string
	for _, k := range sortedKeys(sums) {
		r := map[string]string{"Cluster": d.Cluster, what: k}
		var all int64
		for i, n := range sums[k] {
			all += n
			r[table[i+2].Name] = fmt.Sprint(n)
			if !o.count {
				r[table[i+2].Name] = unit{seconds: o.unit.seconds, amount: true}.show(n, 0)
			}
		}
		r["% of cluster"] = fmt.Sprintf("%.2f%%", 100*float64(all)/float64(max(1, total)))
		rows = append(rows, r)
	}
	var usual []string
	for _, f := range table {
		usual = append(usual, f.Name)
	}
	return o.print(table, strings.Join(usual, ","), rows)
}
