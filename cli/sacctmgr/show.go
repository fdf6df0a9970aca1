package sacctmgr

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/internal/build"
	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/status"
)

// column is a field of a listing: the names it is asked for by, and its field.
type column struct {
	names []string
	format.Field
}

func col(width int, header string, names ...string) column {
	return column{append(names, header), format.Field{Name: header, Width: width}}
}

// columns are all that any listing has, with Slurm's widths.
var columns = []column{
	col(10, "Cluster"), col(10, "Account", "Name"), col(10, "User"), col(10, "Partition"), col(9, "Share", "FairShare", "Shares"), col(10, "Priority"),
	col(7, "GrpJobs"), col(13, "GrpTRES"), col(9, "GrpSubmit", "GrpSubmitJobs"), col(11, "GrpWall"), col(13, "GrpTRESMins"),
	col(7, "MaxJobs"), col(13, "MaxTRES", "MaxTRESPerJob", "MaxTRESPJ"), col(14, "MaxTRESPerNode", "MaxTRESPN"), col(9, "MaxSubmit", "MaxSubmitJobs"), col(11, "MaxWall", "MaxWallDurationPerJob"),
	col(13, "MaxTRESMins", "MaxTRESMinsPerJob"), col(20, "QOS", "QosLevel"), col(9, "Def QOS", "DefaultQOS", "DefQOS"), col(13, "GrpTRESRunMin", "GrpTRESRunMins"),
	col(20, "Descr", "Description"), col(20, "Org", "Organization"), col(10, "Par Name", "ParentName"), col(20, "Coord Accounts", "Coordinators"),
	col(10, "Def Acct", "DefaultAccount", "DefAcct"), col(9, "Admin", "AdminLevel"), col(8, "MaxNodes"), col(8, "MaxCPUs"), col(11, "MaxCPUMins"), col(10, "Def WCKey", "DefaultWCKey"),
	col(10, "Name"), col(10, "GraceTime"), col(10, "Preempt"), col(19, "PreemptExemptTime"), col(11, "PreemptMode"), col(20, "Flags"), col(10, "UsageThres", "UsageThreshold"), col(11, "UsageFactor"),
	col(13, "MaxTRESPU", "MaxTRESPerUser"), col(9, "MaxJobsPU", "MaxJobsPerUser"), col(11, "MaxSubmitPU", "MaxSubmitJobsPerUser"),
	col(13, "MaxTRESPA", "MaxTRESPerAccount"), col(9, "MaxJobsPA", "MaxJobsPerAccount"), col(11, "MaxSubmitPA", "MaxSubmitJobsPerAccount"), col(13, "MinTRES", "MinTRESPerJob"),
	col(15, "ControlHost"), col(12, "ControlPort"), col(5, "RPC"), col(10, "WCKey"), col(6, "ID"), col(8, "Type"), col(15, "TRESName"), col(4, "UID"),
	col(10, "Server"), col(6, "Count"), col(11, "% Allocated", "Allocated"), col(10, "ServerType"), col(10, "Federation"), col(20, "Features"), col(12, "FedState"),
}

// The columns of the listings that were not asked for others.
const (
	assocColumns   = "Cluster,Account,User,Partition,Share,Priority,GrpJobs,GrpTRES,GrpSubmit,GrpWall,GrpTRESMins,MaxJobs,MaxTRES,MaxTRESPerNode,MaxSubmit,MaxWall,MaxTRESMins,QOS,DefaultQOS,GrpTRESRunMins"
	userColumns    = "User,DefaultAccount,Admin"
	userWith       = ",Cluster,Account,Partition,Share,Priority,MaxJobs,MaxNodes,MaxCPUs,MaxSubmit,MaxWall,MaxCPUMins,QOS,DefaultQOS"
	accountColumns = "Account,Descr,Org"
	accountWith    = ",Cluster,ParentName,User,Share,Priority,GrpJobs,GrpTRES,GrpSubmit,GrpWall,GrpTRESMins,MaxJobs,MaxTRES,MaxTRESPerNode,MaxSubmit,MaxWall,MaxTRESMins,QOS,DefaultQOS"
	qosColumns     = "Name,Priority,GraceTime,Preempt,PreemptExemptTime,PreemptMode,Flags%40,UsageThres,UsageFactor,GrpTRES,GrpTRESMins,GrpTRESRunMins,GrpJobs,GrpSubmit,GrpWall,MaxTRES,MaxTRESPerNode,MaxTRESMins,MaxWall,MaxTRESPU,MaxJobsPU,MaxSubmitPU,MaxTRESPA,MaxJobsPA,MaxSubmitPA,MinTRES"
	clusterColumns = "Cluster,ControlHost,ControlPort,RPC,Share,GrpJobs,GrpTRES,GrpSubmit,MaxJobs,MaxTRES,MaxSubmit,MaxWall,QOS,DefaultQOS"
	wckeyColumns   = "WCKey,Cluster,User"
)

// row is one line of a listing: values by the header of a column, and limits.
type row struct {
	values map[string]string
	limits *status.Limits
}

func (r *row) value(header string) string {
	if v, ok := r.values[header]; ok {
		return v
	}
	if r.limits != nil {
		name := strings.TrimSuffix(header, " ")
		if header == "GrpTRESRunMin" {
			name = "GrpTRESRunMins"
		}
		if v, ok := limitText(r.limits, name); ok {
			return v
		}
	}
	return ""
}

const listable = `No valid entity in list command
Input line must include "Account", "Association", "Cluster", "Configuration",
"Event", "Federation", "Problem", "QOS", "Resource", "Reservation",
"RunAwayJobs", "Stats", "Transaction", "TRES", "User", or "WCKey"`

func (o *Options) show(ctx context.Context, words []string) error {
	entity := ""
	if len(words) > 0 {
		entity, words = words[0], words[1:]
	}
	var list func(*world, *listing) []row
	text := ""
	switch {
	case oneOf(entity, "accounts", 2):
		list, text = listAccounts, accountColumns
	case oneOf(entity, "associations", 2):
		list, text = listAssociations, assocColumns
	case oneOf(entity, "users", 1):
		list, text = listUsers, userColumns
	case oneOf(entity, "qos", 1):
		list, text = listQOS, qosColumns
	case oneOf(entity, "clusters", 2):
		list, text = listCluster, clusterColumns
	case oneOf(entity, "wckeys", 1):
		list, text = listWCKeys, wckeyColumns
	case oneOf(entity, "tres", 3):
		list, text = listTRES, "Type,Name%15,ID"
	case oneOf(entity, "runawayjobs", 2):
		return o.p.Print("Runaway Jobs: No runaway jobs found on this cluster: a job's record follows its object\n")
	case oneOf(entity, "resources", 4):
		list, text = listNothing, "Name,Server,Type,Count,Allocated,ServerType"
	case oneOf(entity, "federations", 1):
		list, text = listNothing, "Federation,Cluster,ID%2,Features,FedState"
	case oneOf(entity, "configuration", 2):
		return o.showConfig(ctx)
	case oneOf(entity, "events", 1), oneOf(entity, "problems", 1), oneOf(entity, "stats", 2),
		oneOf(entity, "transactions", 1), oneOf(entity, "txn", 2), oneOf(entity, "reservations", 4):
		fmt.Fprintf(o.p.Err, "sacctmgr: error: there is no list of %s here: %s\n", strings.ToLower(entity), elsewhere(entity))
		return failed()
	default:
		fmt.Fprintln(o.p.Err, listable)
		return failed()
	}
	return o.list(ctx, words, text, list)
}

// elsewhere names what shows it.
func elsewhere(entity string) string {
	switch strings.ToLower(entity)[0] {
	case 'e':
		return "see kubectl get events, and scontrol show node"
	case 't':
		return "see the audit log of the API server"
	case 'r':
		return "see scontrol show reservation and scontrol show licenses"
	case 's':
		return "see sdiag"
	}
	return "see scontrol show config"
}

// listing is what was asked of a list.
type listing struct {
	withAssoc, withCoord, tree       bool
	users, accounts, names, qos      []string
	partitions, clusters, parents    []string
	descriptions, organizations, wck []string
}

func (o *Options) list(ctx context.Context, words []string, text string, list func(*world, *listing) []row) error {
	l := &listing{withAssoc: o.assocs}
	for _, x := range pairs(words) {
		switch {
		case x.key == "" && oneOf(x.value, "where", 5), x.key == "" && oneOf(x.value, "set", 3):
		case x.key == "" && oneOf(x.value, "WithAssoc", 5):
			l.withAssoc = true
		case x.key == "" && oneOf(x.value, "WithCoordinator", 5):
			l.withCoord = true
		case x.key == "" && oneOf(x.value, "Tree", 4):
			l.tree = true
		case x.key == "" && (oneOf(x.value, "WOLimits", 4) || oneOf(x.value, "WOPInfo", 4) || oneOf(x.value, "WOPLimits", 4) || oneOf(x.value, "WithSubAccounts", 5) || oneOf(x.value, "WithDeleted", 5) || oneOf(x.value, "WithRawQOS", 5) || oneOf(x.value, "OnlyDefaults", 5)):
			// there is nothing that these would leave out or add here
		case x.is("Format"):
			text = x.value
			x.key = ""
		default:
			if err := l.condition(x); err != nil {
				return o.explain(err)
			}
		}
	}
	custom := !slices.Contains([]string{accountColumns, assocColumns, userColumns, qosColumns, clusterColumns, wckeyColumns}, text)
	if l.withAssoc && !custom {
		switch text {
		case userColumns:
			text += userWith
		case accountColumns:
			text += accountWith
		}
	}
	at, fields, err := chosen(text)
	if err != nil {
		return o.explain(err)
	}
	w, err := o.world(ctx)
	if err != nil {
		return err
	}
	if custom { // a list of users by account wants their associations
		l.withAssoc = l.withAssoc || o.assocs || slices.ContainsFunc(at, func(i int) bool { return columns[i].Name == "Account" || columns[i].Name == "Share" })
	}
	b := format.AppendFieldHeader(nil, fields, o.style)
	values := make([]string, len(fields))
	for _, r := range list(w, l) {
		for i, k := range at {
			values[i] = r.value(columns[k].Name)
		}
		b = format.AppendFields(b, fields, values, o.style)
	}
	_, err = o.p.Out.Write(b)
	return err
}

// condition takes a filter.
func (l *listing) condition(x pair) error {
	switch {
	case x.key == "":
		l.names = append(l.names, x.list()...)
	case oneOf(x.key, "Names", 1):
		l.names = append(l.names, x.list()...)
	case oneOf(x.key, "Users", 1):
		l.users = append(l.users, x.list()...)
	case oneOf(x.key, "Accounts", 2):
		l.accounts = append(l.accounts, x.lower()...)
	case oneOf(x.key, "Clusters", 1):
		l.clusters = append(l.clusters, x.lower()...)
	case oneOf(x.key, "Partitions", 4):
		l.partitions = append(l.partitions, x.list()...)
	case oneOf(x.key, "Parent", 4):
		l.parents = append(l.parents, x.lower()...)
	case oneOf(x.key, "QosLevel", 1):
		l.qos = append(l.qos, x.lower()...)
	case oneOf(x.key, "Descriptions", 3):
		l.descriptions = append(l.descriptions, x.list()...)
	case oneOf(x.key, "Organizations", 1):
		l.organizations = append(l.organizations, x.list()...)
	case oneOf(x.key, "WCKeys", 2):
		l.wck = append(l.wck, x.list()...)
	case oneOf(x.key, "ID", 1), oneOf(x.key, "Types", 1):
	default:
		return refusal(fmt.Sprintf(" Unknown condition: %s", x.text))
	}
	return nil
}

// pass tells whether a value is among those wanted; no list wants all.
func pass(list []string, v string) bool { return len(list) == 0 || slices.Contains(list, v) }

// chosen reads a format.
func chosen(text string) (at []int, fields []format.Field, err error) {
	for item := range strings.SplitSeq(text, ",") {
		name, _, _ := strings.Cut(strings.TrimSpace(item), "%")
		if name == "" {
			continue
		}
		k := columnCalled(name)
		if k < 0 {
			return nil, nil, refusal(fmt.Sprintf("Unknown field '%s'", name))
		}
		f := columns[k].Field
		if _, one, _ := format.ParseFields([]format.Field{f}, strings.Replace(item, name, f.Name, 1)); len(one) == 1 {
			f = one[0]
		}
		at, fields = append(at, k), append(fields, f)
	}
	return at, fields, nil
}

func columnCalled(name string) int {
	found := -1
	for i := range columns {
		for _, n := range columns[i].names {
			if strings.EqualFold(n, name) && (n != "Name" || columns[i].Name != "Account") {
				return i
			}
			if found < 0 && oneOf(name, n, 1) {
				found = i
			}
		}
	}
	return found
}

func (w *world) accountRow(name string) row {
	a := w.accounts[name]
	r := row{values: map[string]string{"Cluster": w.cluster, "Account": name, "Name": name}, limits: &status.Limits{}}
	if name == root {
		r.values["Descr"], r.values["Org"] = "default root account", root
	} else {
		r.values["Par Name"] = w.parent(name)
	}
	if a != nil {
		r.limits = &a.Limits
		r.values["Descr"], r.values["Org"] = a.Description, a.Organization
		r.values["Coord Accounts"] = strings.Join(a.Coordinators, ",")
		r.values["Def QOS"] = a.DefaultQOS
	}
	r.values["QOS"] = strings.Join(w.effectiveQOS(name, nil), ",")
	return r
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
					out = append(out, w.assocRow(u, &a))
				}
			}
		}
	}
	return out
}

func (w *world) assocRow(u *status.AcctUser, a *status.AcctAssociation) row {
	def := a.DefaultQOS
	if def == "" {
		def = u.DefaultQOS
	}
	admin := u.AdminLevel
	if admin == "" {
		admin = "None"
	}
	return row{values: map[string]string{
		"Cluster": w.cluster, "Account": a.Account, "User": u.Name, "Partition": a.Partition, "Def Acct": u.DefaultAccount, "Admin": admin,
		"QOS": strings.Join(w.effectiveQOS(a.Account, a.QOS), ","), "Def QOS": def, "Def WCKey": u.DefaultWCKey, "UID": fmt.Sprint(u.UID),
	}, limits: &a.Limits}
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

// showConfig tells of accounting what scontrol show config says of the rest.
func (o *Options) showConfig(ctx context.Context) error {
	c, err := o.connect()
	if err != nil {
		return err
	}
	state, err := c.Associations(ctx)
	if err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString("Configuration data as of " + o.p.Now().Format("2006-01-02T15:04:05") + "\n")
	for _, kv := range [][2]string{
		{"AccountingStorageHost", cmp.Or(state.Host, "(null)")}, {"AccountingStorageType", "accounting_storage/berth"},
		{"AuthType", "auth/kubernetes"}, {"ClusterName", state.Cluster}, {"SLURM_VERSION", build.Slurm},
	} {
		fmt.Fprintf(&b, "%-22s = %s\n", kv[0], kv[1])
	}
	return o.p.Print(b.String())
}
