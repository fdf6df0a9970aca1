package sreport

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/status"
)

func (o *Options) usageTable() []format.Field {
	account := format.Field{Name: "Account", Width: 15}
	if o.tree {
		account.Width, account.Left = 20, true
	}
	return []format.Field{
		{Name: "Cluster", Width: 9},
		account,
		{Name: "Login", Width: 9},
		{Name: "Proper Name", Width: 15},
		{
			Name:  "WCKey",
			Width: 15,
		},
		{Name: "TRES Name", Width: 14},
		{Name: "Used", Width: o.amountWidth()},
		{Name: "Energy", Width: 8},
	}
}

// usualColumns appends the columns of usage to front, as in Slurm: the name of the TRES
// if more than CPU is requested, otherwise energy, which is not measured here.
func (o *Options) usualColumns(front string, withEnergy bool) string {
	switch {
	case o.tresGiven:
		return front + ",TRES Name,Used"
	case withEnergy:
		return front + ",Used,Energy"
	}
	return front + ",Used"
}

// rowsOf returns the rows of one account, user or key: one for each TRES.
func (o *Options) rowsOf(d *data, names map[string]string, used map[string]int64) []map[string]string {
	var rows []map[string]string
	for _, t := range o.tres {
		r := maps.Clone(names)
		r["Cluster"], r["TRES Name"] = d.Cluster, t
		r["Used"], r["Energy"] = o.unit.show(used[t], d.available(t)), o.unit.show(0, 1)
		rows = append(rows, r)
	}
	return rows
}

// properName returns the user's name from the password file of this machine.
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

// addTRES adds from to total and returns it; a nil total is allocated.
func addTRES(total, from map[string]int64) map[string]int64 {
	if total == nil {
		total = map[string]int64{}
	}
	for name, n := range from {
		total[name] += n
	}
	return total
}

// used reports whether there is any usage that Slurm's reports count.
func used(tres map[string]int64) bool { return tres["cpu"]+tres["mem"]+tres["node"] > 0 }

// accountUsage is the usage of accounts, including those below them, and of the users of
// each account.
type accountUsage struct {
	accounts map[string]map[string]int64
	users    map[string]map[string]map[string]int64
}

func sumByAccount(d *data) accountUsage {
	sum := accountUsage{accounts: map[string]map[string]int64{}, users: map[string]map[string]map[string]int64{}}
	for _, u := range d.Items {
		if u.TRES["cpu"]+u.TRES["mem"]+u.TRES["node"] == 0 {
			continue
		}
		for _, a := range d.lineage(u.Account) {
			sum.accounts[a] = addTRES(sum.accounts[a], u.TRES)
		}
		if sum.users[u.Account] == nil {
			sum.users[u.Account] = map[string]map[string]int64{}
		}
		sum.users[u.Account][u.User] = addTRES(sum.users[u.Account][u.User], u.TRES)
	}
	return sum
}

func (o *Options) accountByUser(d *data) error {
	if err := o.printTitle("Cluster/Account/User Utilization", o.usageUnit(), true); err != nil {
		return err
	}
	sum := sumByAccount(d)
	var rows []map[string]string
	for _, a := range inTreeOrder(d, sum.accounts) {
		if len(o.accounts) > 0 && !slices.Contains(o.accounts, a) {
			continue
		}
		ofAccount, ofUsers := a, a
		if o.tree {
			indent := strings.Repeat(" ", len(d.lineage(a))-1)
			ofAccount, ofUsers = indent+a, indent+" "+a
		}
		if len(o.wantedUsers(d)) == 0 { // as in Slurm, accounts have no rows of their own if users are named
			rows = append(rows, o.rowsOf(d, map[string]string{"Account": ofAccount}, sum.accounts[a])...)
		}
		for _, u := range slices.Sorted(maps.Keys(sum.users[a])) {
			names := map[string]string{"Account": ofUsers, "Login": u, "Proper Name": o.properName(u)}
			rows = append(rows, o.rowsOf(d, names, sum.users[a][u])...)
		}
	}
	return o.print(o.usageTable(), o.usualColumns("Cluster,Account,Login,Proper Name", true), rows)
}

// inTreeOrder returns the accounts, each followed by those below it.
func inTreeOrder(d *data, totals map[string]map[string]int64) []string {
	path := func(a string) string {
		lineage := d.lineage(a)
		slices.Reverse(lineage)
		return strings.Join(lineage, "\x00")
	}
	accounts := slices.Sorted(maps.Keys(totals))
	slices.SortFunc(accounts, func(a, b string) int { return cmp.Compare(path(a), path(b)) })
	return accounts
}

// sumByUser returns the usage by user and key. The users with the most CPU time come
// first.
func (o *Options) sumByUser(d *data, key func(*status.Usage) string) []status.Usage {
	type userKey struct{ user, key string }
	sums := map[userKey]*status.Usage{}
	total := map[string]int64{}
	for i := range d.Items {
		u := &d.Items[i]
		if len(o.accounts) > 0 && !slices.Contains(o.accounts, u.Account) || len(u.TRES) == 0 {
			continue
		}
		k := userKey{u.User, key(u)}
		sum := sums[k]
		if sum == nil {
			sum = &status.Usage{User: u.User, Account: u.Account, WCKey: u.WCKey, TRES: map[string]int64{}}
			sums[k] = sum
		} else if !slices.Contains(strings.Split(sum.Account, ","), u.Account) {
			sum.Account += "," + u.Account
		}
		addTRES(sum.TRES, u.TRES)
		total[u.User] += u.TRES["cpu"]
	}
	var list []status.Usage
	for _, u := range sums {
		if used(u.TRES) {
			list = append(list, *u)
		}
	}
	slices.SortFunc(list, func(a, b status.Usage) int {
		return cmp.Or(
			cmp.Compare(total[b.User], total[a.User]), cmp.Compare(a.User, b.User),
			cmp.Compare(b.TRES["cpu"], a.TRES["cpu"]), cmp.Compare(a.Account, b.Account), cmp.Compare(a.WCKey, b.WCKey),
		)
	})
	return list
}

func byAccount(u *status.Usage) string { return u.Account }

func byWCKey(u *status.Usage) string { return u.WCKey }

// sumByWCKey returns the usage by user and wckey, without usage that has no wckey.
func (o *Options) sumByWCKey(d *data) []status.Usage {
	return slices.DeleteFunc(o.sumByUser(d, byWCKey), func(u status.Usage) bool { return u.WCKey == "" })
}

func (o *Options) userRows(d *data, list []status.Usage) []map[string]string {
	var rows []map[string]string
	for _, u := range list {
		names := map[string]string{
			"Account": u.Account, "Login": u.User, "Proper Name": o.properName(u.User), "WCKey": u.WCKey,
		}
		rows = append(rows, o.rowsOf(d, names, u.TRES)...)
	}
	return rows
}

func (o *Options) userByAccount(d *data) error {
	if err := o.printTitle("Cluster/User/Account Utilization", o.usageUnit(), true); err != nil {
		return err
	}
	rows := o.userRows(d, o.sumByUser(d, byAccount))
	return o.print(o.usageTable(), o.usualColumns("Cluster,Login,Proper Name,Account", true), rows)
}

// wckeysRefused reports that the caller may not see the usage of wckeys.
func (o *Options) wckeysRefused(call string) error {
	return &slurmerr.Error{Code: 1, Before: []string{
		noPrivilege, "slurmdb_report_cluster_" + call + ": Problem with get query."}}
}

func (o *Options) userByWCKey(d *data) error {
	if !d.operator {
		return o.wckeysRefused("user_by_wckey")
	}
	if err := o.printTitle("Cluster/User/WCKey Utilization", o.usageUnit(), true); err != nil {
		return err
	}
	rows := o.userRows(d, o.sumByWCKey(d))
	return o.print(o.usageTable(), o.usualColumns("Cluster,Login,Proper Name,WCKey", false), rows)
}

func (o *Options) wckeyByUser(d *data) error {
	if !d.operator {
		return o.wckeysRefused("wckey_by_user")
	}
	if err := o.printTitle("Cluster/WCKey/User Utilization", o.usageUnit(), true); err != nil {
		return err
	}
	list := o.sumByWCKey(d)
	slices.SortStableFunc(list, func(a, b status.Usage) int { return cmp.Compare(a.WCKey, b.WCKey) })
	return o.print(o.usageTable(), o.usualColumns("Cluster,WCKey,Login,Proper Name", false), o.userRows(d, list))
}

func (o *Options) topUsage(d *data) error {
	if err := o.printTitle(fmt.Sprintf("Top %d Users", o.topCount), o.usageUnit(), true); err != nil {
		return err
	}
	key := byAccount
	if o.group {
		key = func(*status.Usage) string { return "" }
	}
	var seen []string
	list := slices.DeleteFunc(o.sumByUser(d, key), func(u status.Usage) bool {
		if !slices.Contains(seen, u.User) {
			seen = append(seen, u.User)
		}
		return len(seen) > o.topCount
	})
	return o.print(o.usageTable(), o.usualColumns("Cluster,Login,Proper Name,Account", true), o.userRows(d, list))
}
