package sacctmgr

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/internal/build"
	"github.com/berth-hpc/berth/translate/format"
)

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
		return o.runaway(ctx)
	case oneOf(entity, "events", 1):
		return o.showEvents(ctx, words)
	case oneOf(entity, "transactions", 1), oneOf(entity, "txn", 2):
		return o.showTransactions(ctx, words)
	case oneOf(entity, "problems", 1):
		list, text = listProblems, "Cluster,Account,User,Problem"
	case oneOf(entity, "resources", 4):
		list, text = listNothing, "Name,Server,Type,Count,Allocated,ServerType"
	case oneOf(entity, "federations", 1):
		list, text = listNothing, "Federation,Cluster,ID%2,Features,FedState"
	case oneOf(entity, "configuration", 2):
		return o.showConfig(ctx)
	case oneOf(entity, "stats", 2), oneOf(entity, "reservations", 4):
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
	if oneOf(entity, "stats", 2) {
		return "see sdiag"
	}
	return "see scontrol show reservation and sreport reservation utilization"
}

// listing is what was asked of a list.
type listing struct {
	withAssoc, withCoord, tree       bool
	users, accounts, names, qos      []string
	partitions, clusters, parents    []string
	descriptions, organizations, wck []string
}

func (o *Options) list(ctx context.Context, words []string, text string, list func(*world, *listing) []row) error {
	l, ofAccounts := &listing{withAssoc: o.assocs}, text == accountColumns
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
	at, fields, err := chosen(columns, text)
	if err != nil {
		return o.explain(err)
	}
	if l.tree {
		widenTree(fields)
	}
	w, err := o.world(ctx)
	if err != nil {
		return err
	}
	if custom && !ofAccounts { // a list of users by account wants their associations
		l.withAssoc = l.withAssoc || o.assocs || slices.ContainsFunc(at, func(i int) bool { return columns[i].Name == "Account" || columns[i].Name == "Share" })
	}
	return o.write(columns, at, fields, list(w, l))
}

// widenTree makes room for the tree of accounts, on the left, as Slurm does.
func widenTree(fields []format.Field) {
	for i := range fields {
		if f := &fields[i]; f.Name == "Account" && f.Width == 10 {
			f.Width, f.Left = 20, true
		}
	}
}

// write prints rows: of each the columns with the indexes at.
func (o *Options) write(columns []column, at []int, fields []format.Field, rows []row) error {
	b := format.AppendFieldHeader(nil, fields, o.style)
	values := make([]string, len(fields))
	for i := range rows {
		for k, c := range at {
			values[k] = rows[i].value(columns[c].Name)
		}
		b = format.AppendFields(b, fields, values, o.style)
	}
	_, err := o.p.Out.Write(b)
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
		return refusal(fmt.Sprintf(" Unknown condition: %s\n Use keyword 'set' to modify value", x.text))
	}
	return nil
}

// pass tells whether a value is among those wanted; no list wants all.
func pass(list []string, v string) bool { return len(list) == 0 || slices.Contains(list, v) }

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
