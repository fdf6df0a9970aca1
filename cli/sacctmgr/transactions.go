package sacctmgr

import (
	"context"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/status"
)

var transactionColumns = []column{
	col(19, "Time", "TimeStamp"), col(20, "Action"), col(10, "Actor"), col(20, "Where"), col(20, "Info"), col(10, "User"), col(10, "Account"), col(10, "Cluster"),
}

// actions are those that a list can be of: what slurmdbd calls its requests.
var actions = []string{
	"Add Accounts", "Add Associations", "Add Coordinators", "Add QOS", "Add Users", "Add Clusters", "Add WCKeys",
	"Modify Accounts", "Modify Associations", "Modify QOS", "Modify Users", "Modify Clusters",
	"Remove Accounts", "Remove Associations", "Remove Coordinators", "Remove QOS", "Remove Users", "Remove Clusters", "Remove WCKeys",
}

// showTransactions lists what was changed with sacctmgr, and by whom.
func (o *Options) showTransactions(ctx context.Context, words []string) error {
	text := "Time,Action,Actor,Where,Info"
	q := &status.TransactionQuery{}
	var accounts, users, actors, clusters, kinds []string
	for _, x := range pairs(words) {
		switch {
		case x.key == "" && oneOf(x.value, "where", 5):
		case x.key == "" && oneOf(x.value, "WithAssoc", 5):
			text += ",User,Account,Cluster"
		case oneOf(x.key, "Accounts", 3):
			accounts = x.lower()
		case oneOf(x.key, "Action", 4):
			at := slices.IndexFunc(actions, func(a string) bool { return strings.EqualFold(a, x.value) })
			if at < 0 {
				return slurmerr.Newf(slurmerr.Refused, "You gave a bad action '%s'.", x.value)
			}
			kinds = append(kinds, actions[at])
		case oneOf(x.key, "Actors", 4):
			actors = x.list()
		case oneOf(x.key, "Clusters", 1):
			clusters = x.lower()
		case oneOf(x.key, "End", 1):
			q.End = o.instant(x.value)
		case x.is("Format"):
			text = x.value
		case oneOf(x.key, "Start", 1):
			q.Start = o.instant(x.value)
		case oneOf(x.key, "Users", 1):
			users = x.list()
		default:
			return o.explain(refusal(" Unknown condition: " + x.text))
		}
	}
	at, fields, err := chosen(transactionColumns, text)
	if err != nil {
		return o.explain(err)
	}
	server, err := o.server()
	if err != nil {
		return err
	}
	list, err := server.Transactions(ctx, q)
	if err != nil {
		return err
	}
	var rows []row
	for _, t := range list.Items {
		if pass(accounts, t.Account) && pass(users, t.User) && pass(actors, t.Actor) && pass(kinds, t.Action) && pass(clusters, strings.ToLower(list.Cluster)) {
			rows = append(rows, row{values: map[string]string{
				"Time": o.stamp(t.At), "Action": t.Action, "Actor": t.Actor, "Where": t.Where, "Info": t.Info, "User": t.User, "Account": t.Account, "Cluster": list.Cluster,
			}})
		}
	}
	return o.write(transactionColumns, at, fields, rows)
}
