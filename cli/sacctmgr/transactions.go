package sacctmgr

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/internal/keyvalue"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/status"
)

var transactionColumns = []column{
	col(19, "Time", "TimeStamp"), col(20, "Action"), col(10, "Actor"), col(20, "Where"), col(20, "Info"),
	col(10, "User"), col(10, "Account"), col(10, "Cluster"),
}

// actions are the names of slurmdbd's requests.
var actions = []string{
	"Add Accounts", "Add Associations", "Add Coordinators", "Add QOS", "Add Users", "Add Clusters", "Add WCKeys",
	"Modify Accounts", "Modify Associations", "Modify QOS", "Modify Users", "Modify Clusters",
	"Remove Accounts", "Remove Associations", "Remove Coordinators", "Remove QOS", "Remove Users", "Remove Clusters",
	"Remove WCKeys",
}

// transactionFilter has the arguments of list transactions.
type transactionFilter struct {
	options                           *Options
	query                             status.TransactionQuery
	format                            string
	accounts, users, actors, clusters []string
	actions                           []string
}

// transactionWords are in Slurm's order.
var transactionWords = keyvalue.Table[*transactionFilter]{
	{Name: "where", Least: 5, Form: keyvalue.Word, Set: keyvalue.Ignored[*transactionFilter]},
	{Name: "WithAssoc", Least: 5, Form: keyvalue.Word, Set: func(f *transactionFilter, _ keyvalue.Pair) error {
		f.format += ",User,Account,Cluster"
		return nil
	}},
	{Name: "Accounts", Least: 3, Set: func(f *transactionFilter, p keyvalue.Pair) error {
		f.accounts = p.LowerList()
		return nil
	}},
	{Name: "Action", Least: 4, Set: (*transactionFilter).addAction},
	{Name: "Actors", Least: 4, Set: func(f *transactionFilter, p keyvalue.Pair) error {
		f.actors = p.List()
		return nil
	}},
	{Name: "Clusters", Least: 1, Set: func(f *transactionFilter, p keyvalue.Pair) error {
		f.clusters = p.LowerList()
		return nil
	}},
	{Name: "End", Least: 1, Set: func(f *transactionFilter, p keyvalue.Pair) error {
		f.query.End = f.options.parseTime(p.Value)
		return nil
	}},
	{Name: "Format", Least: 3, Set: func(f *transactionFilter, p keyvalue.Pair) error {
		f.format = p.Value
		return nil
	}},
	{Name: "Start", Least: 1, Set: func(f *transactionFilter, p keyvalue.Pair) error {
		f.query.Start = f.options.parseTime(p.Value)
		return nil
	}},
	{Name: "Users", Least: 1, Set: func(f *transactionFilter, p keyvalue.Pair) error {
		f.users = p.List()
		return nil
	}},
}

func (f *transactionFilter) addAction(p keyvalue.Pair) error {
	i := slices.IndexFunc(actions, func(a string) bool { return strings.EqualFold(a, p.Value) })
	if i < 0 {
		return slurmerr.Newf(slurmerr.Refused, "You gave a bad action '%s'.", p.Value)
	}
	f.actions = append(f.actions, actions[i])
	return nil
}

// includes reports whether the transaction passes the filter.
func (f *transactionFilter) includes(t *status.Transaction, cluster string) bool {
	return matches(f.accounts, t.Account) && matches(f.users, t.User) && matches(f.actors, t.Actor) &&
		matches(f.actions, t.Action) && matches(f.clusters, strings.ToLower(cluster))
}

// showTransactions prints what was changed with sacctmgr, and by whom.
func (o *Options) showTransactions(ctx context.Context, words []string) error {
	f := &transactionFilter{options: o, format: "Time,Action,Actor,Where,Info"}
	for _, p := range keyvalue.ParseAll(words) {
		if known, err := transactionWords.Set(f, p); err != nil || !known {
			return o.explain(cmp.Or(err, refusef(" Unknown condition: %s", p.Text)))
		}
	}
	selected, err := selectColumns(transactionColumns, f.format)
	if err != nil {
		return o.explain(err)
	}
	server, err := o.server()
	if err != nil {
		return err
	}
	list, err := server.Transactions(ctx, &f.query)
	if err != nil {
		return err
	}
	var rows []row
	for i := range list.Items {
		if t := &list.Items[i]; f.includes(t, list.Cluster) {
			rows = append(rows, row{values: map[string]string{
				"Time": o.formatTime(t.At), "Action": t.Action, "Actor": t.Actor, "Where": t.Where, "Info": t.Info,
				"User": t.User, "Account": t.Account, "Cluster": list.Cluster,
			}})
		}
	}
	return o.print(selected, rows)
}
