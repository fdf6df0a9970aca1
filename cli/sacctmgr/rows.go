package sacctmgr

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/translate/status"
)

// effectiveLimits returns own, with the limits of jobs and users that it does
// not set from the account and those above it.
func (s *state) effectiveLimits(account string, own status.Limits) *status.Limits {
	for {
		if a := s.accounts[account]; a != nil {
			own.MaxJobs = cmp.Or(own.MaxJobs, a.Limits.MaxJobs)
			own.MaxSubmitJobs = cmp.Or(own.MaxSubmitJobs, a.Limits.MaxSubmitJobs)
			own.MaxWall = cmp.Or(own.MaxWall, a.Limits.MaxWall)
			own.MaxTRES = inheritTRES(own.MaxTRES, a.Limits.MaxTRES)
			own.MaxTRESPerNode = inheritTRES(own.MaxTRESPerNode, a.Limits.MaxTRESPerNode)
			own.MaxTRESMins = inheritTRES(own.MaxTRESMins, a.Limits.MaxTRESMins)
		}
		if account == rootAccount {
			return &own
		}
		account = s.parent(account)
	}
}

// inheritTRES returns own, with the TRES that it does not name from parent.
func inheritTRES(own, parent map[string]int64) map[string]int64 {
	if parent == nil {
		return own
	}
	out := maps.Clone(parent)
	maps.Copy(out, own)
	return out
}

// nearest returns own, or else the first value that isSet of the account and
// those above it.
func nearest[T any](s *state, account string, own T, isSet func(T) bool, field func(*status.AcctAccount) T) T {
	for !isSet(own) {
		if a := s.accounts[account]; a != nil {
			own = field(a)
		}
		if account == rootAccount {
			break
		}
		account = s.parent(account)
	}
	return own
}

// effectiveDefaultQOS returns own, or that of the nearest account that has one.
func (s *state) effectiveDefaultQOS(account, own string) string {
	return nearest(s, account, own, func(q string) bool { return q != "" },
		func(a *status.AcctAccount) string { return a.DefaultQOS })
}

// effectiveQOS returns the QOS that the association may use: its own list, or
// that of the nearest account that has one.
func (s *state) effectiveQOS(account string, own []string) []string {
	list := nearest(s, account, own, func(list []string) bool { return len(list) > 0 },
		func(a *status.AcctAccount) []string { return a.QOS })
	if len(list) == 0 {
		return []string{normalQOS}
	}
	return list
}

// noUsage is what Slurm prints of a factor or threshold of usage, which only QOS have.
const noUsage = "0.000000"

func (s *state) accountRow(name string) row {
	a := s.accounts[name]
	r := row{limits: &status.Limits{}, values: map[string]string{
		"Cluster": s.cluster, "Account": name, "UsageFactor": noUsage, "UsageThres": noUsage}}
	if name == rootAccount {
		r.values["Descr"], r.values["Org"] = "default root account", rootAccount
	} else {
		r.values["ParentName"] = s.parent(name)
	}
	if a != nil {
		r.limits = s.effectiveLimits(s.parent(name), a.Limits)
		if name == rootAccount {
			r.limits = &a.Limits
		}
		r.values["Descr"], r.values["Org"] = a.Description, a.Organization
		r.values["Coord Accounts"] = strings.Join(s.coordinators(name), ",")
	}
	r.values["Def QOS"] = s.effectiveDefaultQOS(name, "")
	r.values["QOS"] = strings.Join(s.effectiveQOS(name, nil), ",")
	return r
}

func (s *state) associationRow(u *status.AcctUser, a *status.AcctAssociation) row {
	defaultQOS := a.DefaultQOS
	if defaultQOS == "" {
		defaultQOS = s.effectiveDefaultQOS(a.Account, u.DefaultQOS)
	}
	return row{
		values: map[string]string{
			"Cluster": s.cluster, "Account": a.Account, "User": u.Name, "Partition": a.Partition,
			"UID": fmt.Sprint(u.UID), "Coord Accounts": strings.Join(s.coordinated(u.Name), ","),
			"Def Acct": u.DefaultAccount, "Admin": cmp.Or(u.AdminLevel, "None"), "Def WCKey": u.DefaultWCKey,
			"QOS": strings.Join(s.effectiveQOS(a.Account, a.QOS), ","), "Def QOS": defaultQOS,
			"UsageFactor": noUsage, "UsageThres": noUsage,
		},
		limits: s.effectiveLimits(a.Account, a.Limits),
	}
}

// lineage returns the account and those above it, up to root.
func (s *state) lineage(name string) []string {
	out := []string{name}
	for name != rootAccount && len(out) < 100 { // parents may form a cycle
		name = s.parent(name)
		out = append(out, name)
	}
	return out
}

// coordinators returns the users who coordinate the account or one above it.
func (s *state) coordinators(account string) []string {
	var out []string
	for _, name := range s.lineage(account) {
		if a := s.accounts[name]; a != nil {
			out = append(out, a.Coordinators...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// coordinated returns the accounts that the user coordinates.
func (s *state) coordinated(user string) []string {
	return slices.DeleteFunc(sortedNames(s.accounts),
		func(account string) bool { return !slices.Contains(s.coordinators(account), user) })
}

func listAccounts(s *state, l *listing) []row {
	names := sortedNames(s.accounts)
	if !slices.Contains(names, rootAccount) {
		names = append(names, rootAccount)
	}
	slices.Sort(names)
	var out []row
	for _, name := range names {
		r := s.accountRow(name)
		if !l.includesAccount(s, &r, name) {
			continue
		}
		if !l.withAssoc {
			out = append(out, withoutAssociation(r))
			continue
		}
		out = append(out, r)
		for _, u := range s.members(name) {
			for _, a := range associations(u, name) {
				x := s.associationRow(u, &a)
				x.values["Descr"], x.values["Org"] = r.values["Descr"], r.values["Org"]
				out = append(out, x)
			}
		}
	}
	return out
}

func (l *listing) includesAccount(s *state, r *row, name string) bool {
	return matches(slices.Concat(l.names, l.accounts), name) && matches(l.descriptions, r.values["Descr"]) &&
		matches(l.organizations, r.values["Org"]) && matches(l.parents, s.parent(name)) && l.includesCluster(s)
}

func (l *listing) includesCluster(s *state) bool {
	return matches(l.clusters, strings.ToLower(s.cluster))
}

func listAssociations(s *state, l *listing) []row {
	if !l.includesCluster(s) || len(l.names)+len(l.ids) > 0 { // those are numbers, which no association has
		return nil
	}
	users := l.users
	var out []row
	for _, name := range s.accountNames() {
		if !matches(l.accounts, name) || !matches(l.parents, s.parent(name)) {
			continue
		}
		ofAccount, ofUser := name, name
		if l.tree && !l.withoutParents {
			indent := strings.Repeat(" ", s.depth(name))
			ofAccount, ofUser = indent+name, indent+" "+name
		}
		if len(users)+len(l.partitions) == 0 && !l.onlyDefaults {
			r := s.accountRow(name)
			if l.withoutParents {
				r = s.withoutParent(name, r)
			}
			r.values["Account"] = ofAccount
			out = append(out, r)
		}
		for _, u := range s.members(name) {
			for _, a := range associations(u, name) {
				if !matches(users, u.Name) || !matches(l.partitions, a.Partition) ||
					l.onlyDefaults && a.Account != u.DefaultAccount {
					continue
				}
				r := s.associationRow(u, &a)
				r.values["Account"] = ofUser
				if l.withoutParents {
					r.limits, r.values["QOS"], r.values["Def QOS"] = &a.Limits, strings.Join(a.QOS, ","), a.DefaultQOS
				}
				out = append(out, r)
			}
		}
	}
	if l.withoutParents {
		slices.SortStableFunc(out, func(a, b row) int { return cmp.Compare(flatOrder(&a), flatOrder(&b)) })
	}
	return out
}

// flatOrder returns where the row of an association stands in a list without parents: Slurm
// has the users first, those of root, its oldest account, behind the others.
func flatOrder(r *row) int {
	switch {
	case r.values["User"] == "":
		return 2
	case r.values["Account"] == rootAccount:
		return 1
	}
	return 0
}

// withoutParent returns the row of an account with what it does not have from its parent.
func (s *state) withoutParent(name string, r row) row {
	delete(r.values, "ParentName")
	r.limits, r.values["QOS"], r.values["Def QOS"] = &status.Limits{}, "", ""
	if a := s.accounts[name]; a != nil {
		r.limits, r.values["QOS"], r.values["Def QOS"] = &a.Limits, strings.Join(a.QOS, ","), a.DefaultQOS
	}
	if name == rootAccount && r.values["QOS"] == "" {
		r.values["QOS"] = normalQOS
	}
	return r
}

func listUsers(s *state, l *listing) []row {
	wanted := slices.Concat(l.names, l.users)
	var out []row
	for _, name := range sortedNames(s.users) {
		u := s.users[name]
		accounts := accountsOf(u)
		inDatabase := len(accounts) > 0 || u.AdminLevel != "" // by Slurm's measure
		if !matches(wanted, name) || len(wanted) == 0 && !inDatabase {
			continue
		}
		if len(l.accounts) > 0 && !slices.ContainsFunc(l.accounts,
			func(a string) bool { return slices.Contains(accounts, a) }) {
			continue
		}
		if !l.withAssoc || len(accounts) == 0 {
			out = append(out, s.userRow(u, l))
			continue
		}
		for _, account := range accounts {
			for _, a := range associations(u, account) {
				if matches(l.accounts, account) && matches(l.partitions, a.Partition) {
					out = append(out, s.associationRow(u, &a))
				}
			}
		}
	}
	return out
}

// userRow returns the row of a user without associations.
func (s *state) userRow(u *status.AcctUser, l *listing) row {
	r := s.associationRow(u, &status.AcctAssociation{})
	if !l.withAssoc {
		return withoutAssociation(r)
	}
	for _, header := range []string{"Cluster", "Account", "QOS"} {
		r.values[header] = ""
	}
	r.limits = nil
	return r
}

// associationColumns are the columns of associations with values that are not limits.
var associationColumns = []string{"Cluster", "ParentName", "Partition", "QOS", "Def QOS"}

// noLimits are the limits as a row without an association has them.
var noLimits = map[string]string{"GrpWall": "00:00:00", "MaxWall": "00:00:00"}

func init() {
	for _, header := range []string{
		"Share", "GrpJobs", "GrpJobsAccrue", "GrpSubmit", "MaxJobs", "MaxJobsAccrue", "MaxSubmit", "MaxJobsPU",
		"MaxSubmitPU", "MaxJobsPA", "MaxSubmitPA", "GrpNodes", "GrpCPUs", "GrpMem", "MaxNodes", "MaxCPUs", "MaxCPUMins",
		"GrpCPUMins", "MinPrioThres", "LFT", "RGT", "ParentID",
	} {
		noLimits[header] = "0"
	}
}

// withoutAssociation returns the row of a user or an account in a list without WithAssoc: as
// in Slurm, its association is empty.
func withoutAssociation(r row) row {
	for _, header := range associationColumns {
		delete(r.values, header)
	}
	if r.values["User"] != "" {
		delete(r.values, "Account")
	}
	r.limits = nil
	maps.Copy(r.values, noLimits)
	return r
}

func listQOS(s *state, l *listing) []row {
	all := s.original.QOS
	if len(all) == 0 {
		all = []status.AcctQOS{{Name: normalQOS, Description: normalDescription}}
	}
	wanted := lowerCase(slices.Concat(l.names, l.qos))
	var out []row
	for i := range all {
		if matches(wanted, all[i].Name) {
			out = append(out, qosRow(&all[i]))
		}
	}
	return out
}

func qosRow(q *status.AcctQOS) row {
	exempt := ""
	if q.PreemptExempt > 0 {
		exempt = clockText(q.PreemptExempt)
	}
	limits := q.Limits
	return row{
		values: map[string]string{
			"Name": q.Name, "Share": "0", "Descr": q.Description, "Priority": fmt.Sprint(q.Priority),
			"GraceTime": clockText(q.GraceTime),
			"Preempt":   strings.Join(q.Preempt, ","), "PreemptExemptTime": exempt,
			"PreemptMode": cmp.Or(strings.ToLower(q.PreemptMode), "cluster"), "Flags": strings.Join(q.Flags, ","),
			"UsageThres": decimalText(q.UsageThres), "UsageFactor": decimalText(cmp.Or(q.UsageFactor, "1")),
		},
		limits: &limits,
	}
}

func lowerCase(list []string) []string {
	for i := range list {
		list[i] = strings.ToLower(list[i])
	}
	return list
}

func decimalText(text string) string {
	if text == "" {
		return ""
	}
	var f float64
	if _, err := fmt.Sscan(text, &f); err != nil {
		return text
	}
	return fmt.Sprintf("%f", f)
}

func clockText(seconds int32) string {
	if d := seconds / 86400; d > 0 {
		return fmt.Sprintf("%d-%02d:%02d:%02d", d, seconds/3600%24, seconds/60%60, seconds%60)
	}
	return fmt.Sprintf("%02d:%02d:%02d", seconds/3600, seconds/60%60, seconds%60)
}

func listCluster(s *state, l *listing) []row {
	if !matches(lowerCase(slices.Concat(l.names, l.clusters)), strings.ToLower(s.cluster)) {
		return nil
	}
	return []row{s.clusterRow()}
}

func (s *state) clusterRow() row {
	r := s.accountRow(rootAccount)
	r.values["Name"] = s.cluster
	r.values["ControlHost"], r.values["ControlPort"], r.values["RPC"] = s.original.Host, "0", "0"
	return r
}

func listWCKeys(s *state, l *listing) []row {
	wanted := slices.Concat(l.names, l.wckeys)
	var out []row
	for _, name := range sortedNames(s.users) {
		for _, k := range s.users[name].WCKeys {
			if matches(wanted, k) && matches(l.users, name) {
				out = append(out, row{values: map[string]string{"WCKey": k, "Cluster": s.cluster, "User": name}})
			}
		}
	}
	return out
}

// tresIDs are the TRES of every cluster with Slurm's numbers.
var tresIDs = []struct {
	kind, name string
	id         int
}{
	{"cpu", "", 1}, {"mem", "", 2}, {"energy", "", 3}, {"node", "", 4}, {"billing", "", 5},
	{"fs", "disk", 6}, {"vmem", "", 7}, {"pages", "", 8}, {"gres", "gpu", 1001},
}

func listTRES(_ *state, l *listing) []row {
	var out []row
	for _, t := range tresIDs {
		unnamed := len(l.empty) > 0 && t.name != "" // Names= is the empty name
		if unnamed || !matches(l.names, t.name) || !matches(l.types, t.kind) || !matches(l.ids, strconv.Itoa(t.id)) {
			continue
		}
		out = append(out, row{values: map[string]string{"Type": t.kind, "Name": t.name, "ID": strconv.Itoa(t.id)}})
	}
	return out
}

// listNothing lists what does not exist here: licenses that several clusters share.
func listNothing(*state, *listing) []row { return nil }

// listProblems lists the accounts that nobody can use, in Slurm's words.
func listProblems(s *state, _ *listing) []row {
	used := map[string]bool{rootAccount: true}
	for name := range s.accounts {
		used[s.parent(name)] = true
	}
	for _, u := range s.users {
		for _, account := range accountsOf(u) {
			used[account] = true
		}
	}
	var out []row
	for _, name := range s.accountNames() {
		if !used[name] {
			out = append(out, row{values: map[string]string{
				"Cluster": s.cluster, "Account": name, "Problem": "Account has no users"}})
		}
	}
	return out
}
