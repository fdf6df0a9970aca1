package sacctmgr

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/translate/status"
)

func (w *world) accountRow(name string) row {
	a := w.accounts[name]
	r := row{values: map[string]string{"Cluster": w.cluster, "Account": name, "Name": name}, limits: &status.Limits{}}
	if name == root {
		r.values["Descr"], r.values["Org"] = "default root account", root
	} else {
		r.values["ParentName"] = w.parent(name)
	}
	if a != nil {
		r.limits = w.inherited(w.parent(name), a.Limits)
		if name == root {
			r.limits = &a.Limits
		}
		r.values["Descr"], r.values["Org"] = a.Description, a.Organization
		r.values["Coord Accounts"] = strings.Join(a.Coordinators, ",")
	}
	r.values["Def QOS"] = w.defaultQOS(name, "")
	r.values["QOS"] = strings.Join(w.effectiveQOS(name, nil), ",")
	return r
}

// inherited are the limits with those of single jobs and users that the account
// and those above it set, where own has none.
func (w *world) inherited(account string, own status.Limits) *status.Limits {
	for {
		if a := w.accounts[account]; a != nil {
			own.MaxJobs = cmp.Or(own.MaxJobs, a.Limits.MaxJobs)
			own.MaxSubmitJobs = cmp.Or(own.MaxSubmitJobs, a.Limits.MaxSubmitJobs)
			own.MaxWall = cmp.Or(own.MaxWall, a.Limits.MaxWall)
			own.MaxTRES = joined(own.MaxTRES, a.Limits.MaxTRES)
			own.MaxTRESPerNode = joined(own.MaxTRESPerNode, a.Limits.MaxTRESPerNode)
			own.MaxTRESMins = joined(own.MaxTRESMins, a.Limits.MaxTRESMins)
		}
		if account == root {
			return &own
		}
		account = w.parent(account)
	}
}

// defaultQOS is own, or that of the nearest account that has one.
func (w *world) defaultQOS(account, own string) string {
	for own == "" {
		if a := w.accounts[account]; a != nil {
			own = a.DefaultQOS
		}
		if account == root {
			break
		}
		account = w.parent(account)
	}
	return own
}

// joined is own and, of what it does not name, what above has.
func joined(own, above map[string]int64) map[string]int64 {
	out := maps.Clone(above)
	if out == nil {
		return own
	}
	maps.Copy(out, own)
	return out
}

// effectiveQOS is what the association may ask for: its own list, or that of
// the nearest account that has one.
func (w *world) effectiveQOS(account string, own []string) []string {
	for len(own) == 0 {
		if a := w.accounts[account]; a != nil {
			own = a.QOS
		}
		if account == root {
			break
		}
		account = w.parent(account)
	}
	if len(own) == 0 {
		return []string{"normal"}
	}
	return own
}

func listAccounts(w *world, l *listing) []row {
	var out []row
	names := sortedNames(w.accounts)
	if !slices.Contains(names, root) {
		names = append(names, root)
	}
	slices.Sort(names)
	for _, name := range names {
		r := w.accountRow(name)
		if !pass(append(slices.Clone(l.names), l.accounts...), name) || !pass(l.descriptions, r.values["Descr"]) ||
			!pass(l.organizations, r.values["Org"]) || !pass(l.parents, w.parent(name)) || !pass(l.clusters, strings.ToLower(w.cluster)) {
			continue
		}
		out = append(out, r)
		if l.withAssoc {
			for _, u := range w.members(name) {
				for _, a := range associations(u, name) {
					x := w.assocRow(u, &a)
					x.values["Descr"], x.values["Org"] = r.values["Descr"], r.values["Org"]
					out = append(out, x)
				}
			}
		}
	}
	return out
}

func (w *world) assocRow(u *status.AcctUser, a *status.AcctAssociation) row {
	def := a.DefaultQOS
	if def == "" {
		def = w.defaultQOS(a.Account, u.DefaultQOS)
	}
	admin := u.AdminLevel
	if admin == "" {
		admin = "None"
	}
	return row{values: map[string]string{
		"Cluster": w.cluster, "Account": a.Account, "User": u.Name, "Partition": a.Partition, "Def Acct": u.DefaultAccount, "Admin": admin,
		"QOS": strings.Join(w.effectiveQOS(a.Account, a.QOS), ","), "Def QOS": def, "Def WCKey": u.DefaultWCKey, "UID": fmt.Sprint(u.UID),
	}, limits: w.inherited(a.Account, a.Limits)}
}

func listAssociations(w *world, l *listing) []row {
	var out []row
	if !pass(l.clusters, strings.ToLower(w.cluster)) {
		return nil
	}
	for _, name := range w.accountNames() {
		if !pass(l.accounts, name) || !pass(l.parents, w.parent(name)) {
			continue
		}
		indent := ""
		if l.tree {
			indent = strings.Repeat(" ", w.depth(name))
		}
		if len(l.users)+len(l.names)+len(l.partitions) == 0 {
			r := w.accountRow(name)
			r.values["Account"] = indent + name
			out = append(out, r)
		}
		for _, u := range w.members(name) {
			for _, a := range associations(u, name) {
				if pass(append(slices.Clone(l.users), l.names...), u.Name) && pass(l.partitions, a.Partition) {
					r := w.assocRow(u, &a)
					if l.tree {
						r.values["Account"] = indent + " " + name
					}
					out = append(out, r)
				}
			}
		}
	}
	return out
}

func listUsers(w *world, l *listing) []row {
	var out []row
	for _, name := range sortedNames(w.users) {
		u := w.users[name]
		if !pass(append(slices.Clone(l.names), l.users...), name) || len(accountsOf(u)) == 0 && u.AdminLevel == "" && len(l.names)+len(l.users) == 0 {
			continue
		}
		if len(l.accounts) > 0 && !slices.ContainsFunc(l.accounts, func(a string) bool { return member(u, a) }) {
			continue
		}
		accounts := accountsOf(u)
		if !l.withAssoc || len(accounts) == 0 {
			r := w.assocRow(u, &status.AcctAssociation{})
			if l.withAssoc || len(accounts) == 0 {
				for _, k := range []string{"Cluster", "Account", "QOS"} {
					r.values[k] = ""
				}
			}
			if len(accounts) == 0 && l.withAssoc {
				r.limits = nil
			}
			out = append(out, r)
			continue
		}
		for _, account := range accounts {
			for _, a := range associations(u, account) {
				if pass(l.accounts, account) && pass(l.partitions, a.Partition) {
					out = append(out, w.assocRow(u, &a))
				}
			}
		}
	}
	return out
}

func listQOS(w *world, l *listing) []row {
	all := w.qos
	if len(all) == 0 {
		all = map[string]*status.AcctQOS{"normal": {Name: "normal", Description: "Normal QOS default"}}
	}
	var out []row
	for _, name := range sortedNames(all) {
		q := all[name]
		if !pass(lowered(append(slices.Clone(l.names), l.qos...)), name) {
			continue
		}
		mode, factor, exempt := strings.ToLower(q.PreemptMode), q.UsageFactor, ""
		if mode == "" {
			mode = "cluster"
		}
		if factor == "" {
			factor = "1"
		}
		if q.PreemptExempt > 0 {
			exempt = clock(q.PreemptExempt)
		}
		limits := q.Limits
		out = append(out, row{values: map[string]string{
			"Name": name, "Descr": q.Description, "Priority": fmt.Sprint(q.Priority), "GraceTime": clock(q.GraceTime),
			"Preempt": strings.Join(q.Preempt, ","), "PreemptExemptTime": exempt, "PreemptMode": mode, "Flags": strings.Join(q.Flags, ","),
			"UsageThres": decimal(q.UsageThres), "UsageFactor": decimal(factor),
		}, limits: &limits})
	}
	return out
}

func lowered(list []string) []string {
	for i := range list {
		list[i] = strings.ToLower(list[i])
	}
	return list
}

func decimal(text string) string {
	if text == "" {
		return ""
	}
	var f float64
	if _, err := fmt.Sscan(text, &f); err != nil {
		return text
	}
	return fmt.Sprintf("%f", f)
}

func clock(seconds int32) string {
	if d := seconds / 86400; d > 0 {
		return fmt.Sprintf("%d-%02d:%02d:%02d", d, seconds/3600%24, seconds/60%60, seconds%60)
	}
	return fmt.Sprintf("%02d:%02d:%02d", seconds/3600, seconds/60%60, seconds%60)
}

func listCluster(w *world, l *listing) []row {
	if !pass(lowered(append(slices.Clone(l.names), l.clusters...)), strings.ToLower(w.cluster)) {
		return nil
	}
	r := w.accountRow(root)
	r.values["Name"] = w.cluster
	r.values["ControlHost"], r.values["ControlPort"], r.values["RPC"] = w.before.Host, "0", "0"
	return []row{r}
}

func listWCKeys(w *world, l *listing) []row {
	var out []row
	for _, name := range sortedNames(w.users) {
		u := w.users[name]
		for _, k := range u.WCKeys {
			if pass(append(slices.Clone(l.names), l.wck...), k) && pass(l.users, name) {
				out = append(out, row{values: map[string]string{"WCKey": k, "Cluster": w.cluster, "User": name}})
			}
		}
	}
	return out
}

func listTRES(*world, *listing) []row {
	var out []row
	for i, name := range []string{"cpu", "mem", "energy", "node", "billing", "fs/disk", "vmem", "pages", "gres/gpu"} {
		kind, sub, _ := strings.Cut(name, "/")
		id := i + 1
		if kind == "gres" {
			id = 1001
		}
		out = append(out, row{values: map[string]string{"Type": kind, "Name": sub, "ID": fmt.Sprint(id)}})
	}
	return out
}

// listNothing is a list of what there never is here: other clusters, licences
// that several clusters share.
func listNothing(*world, *listing) []row { return nil }

// listProblems are accounts that nobody can use, in Slurm's words.
func listProblems(w *world, _ *listing) []row {
	used := map[string]bool{root: true}
	for name := range w.accounts {
		used[w.parent(name)] = true
	}
	for _, u := range w.users {
		for _, account := range accountsOf(u) {
			used[account] = true
		}
	}
	var out []row
	for _, name := range w.accountNames() {
		if !used[name] {
			out = append(out, row{values: map[string]string{"Cluster": w.cluster, "Account": name, "Problem": "Account has no users"}})
		}
	}
	return out
}
