package server

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/translate/status"
)

// recordTransactions records what was changed, for sacctmgr list transactions.
func (s *Server) recordTransactions(c *directory.Caller, targets []target) {
	at, actor := s.Now().Unix(), c.Name
	if c.User != nil {
		actor = c.User.Name
	}
	var out []status.Transaction
	for i := range targets {
		for _, t := range transactionsOf(&targets[i]) {
			t.At, t.Actor = at, actor
			out = append(out, t)
		}
	}
	s.Recorder.RecordTransactions(out)
}

// transactionsOf returns the changes of one object, with the names of slurmdbd's
// requests.
func transactionsOf(t *target) []status.Transaction {
	name := nameOf(t)
	verb := "Modify "
	switch {
	case t.old == nil:
		verb = "Add "
	case t.now == nil:
		verb = "Remove "
	}
	before, after := fieldsOf(t.old), fieldsOf(t.now)
	switch o := either(t).(type) {
	case *v1alpha1.QOS:
		return withInfo(status.Transaction{Action: verb + "QOS", Where: name}, before, after)
	case *v1alpha1.Account:
		return accountChanges(verb, name, before, after)
	case *v1alpha1.User:
		return userChanges(o.Name, before, after)
	}
	return nil
}

func either(t *target) client.Object {
	if t.now != nil {
		return t.now
	}
	return t.old
}

// withInfo returns the transaction with what it changed, or none if it changes
// nothing.
func withInfo(t status.Transaction, before, after map[string]string) []status.Transaction {
	if t.Info = difference(before, after); t.Info == "" && strings.HasPrefix(t.Action, "Modify") {
		return nil
	}
	return []status.Transaction{t}
}

// descriptive are the fields of an account that are not of its association.
var descriptive = []string{"description", "organization", "coordinators"}

func accountChanges(verb, name string, before, after map[string]string) []status.Transaction {
	of := func(m map[string]string, own bool) map[string]string {
		out := maps.Clone(m)
		maps.DeleteFunc(out, func(k, _ string) bool { return slices.Contains(descriptive, k) != own })
		return out
	}
	out := withInfo(
		status.Transaction{Action: verb + "Accounts", Where: name, Account: name},
		of(before, true),
		of(after, true),
	)
	return append(
		out,
		withInfo(
			status.Transaction{Action: verb + "Associations", Where: "account=" + name, Account: name},
			of(before, false),
			of(after, false),
		)...)
}

// userChanges returns the changes of a user. The user's accounts are associations,
// which are added and removed.
func userChanges(name string, before, after map[string]string) []status.Transaction {
	had, has := strings.Split(before["accounts"], ","), strings.Split(after["accounts"], ",")
	var out []status.Transaction
	if before["accounts"] == "" && after["accounts"] != "" {
		out = append(
			out,
			status.Transaction{
				Action: "Add Users",
				Where:  name,
				User:   name,
				Info:   "default account=" + after["defaultAccount"],
			},
		)
	}
	associations := func(action string, list, without []string) {
		for _, a := range list {
			if a != "" && !slices.Contains(without, a) {
				out = append(
					out,
					status.Transaction{Action: action, Where: "account=" + a + " user=" + name, User: name, Account: a},
				)
			}
		}
	}
	associations("Add Associations", has, had)
	associations("Remove Associations", had, has)
	if before["accounts"] != "" && after["accounts"] == "" {
		return append(out, status.Transaction{Action: "Remove Users", Where: name, User: name})
	}
	changed := func(keys ...string) (a, b map[string]string) {
		a, b = map[string]string{}, map[string]string{}
		for _, k := range keys {
			a[k], b[k] = before[k], after[k]
		}
		return a, b
	}
	a, b := changed("adminLevel", "defaultAccount", "defaultWCKey", "wckeys", "defaultQOS")
	if len(out) == 0 {
		out = withInfo(status.Transaction{Action: "Modify Users", Where: name, User: name}, a, b)
	}
	a, b = changed("associations")
	return append(
		out,
		withInfo(status.Transaction{Action: "Modify Associations", Where: "user=" + name, User: name}, a, b)...)
}

// fieldsOf returns the fields of an object's spec as text.
func fieldsOf(o client.Object) map[string]string {
	var spec any
	switch x := o.(type) {
	case *v1alpha1.Account:
		spec = x.Spec
	case *v1alpha1.User:
		spec = x.Spec
	case *v1alpha1.QOS:
		spec = x.Spec
	}
	var raw map[string]any
	convert(spec, &raw)
	out := map[string]string{}
	flatten(out, "", raw)
	return out
}

// flatten adds the fields of v to out; those of limits become fields of the
// object, as in sacctmgr.
func flatten(out map[string]string, key string, v any) {
	switch x := v.(type) {
	case map[string]any:
		if key != "" && key != "limits" {
			list := make([]string, 0, len(x))
			for k, n := range x {
				list = append(list, fmt.Sprintf("%s=%v", k, n))
			}
			slices.Sort(list)
			out[key] = strings.Join(list, ",")
			return
		}
		for k, n := range x {
			flatten(out, k, n)
		}
	case []any:
		list := make([]string, 0, len(x))
		for _, n := range x {
			if _, plain := n.(string); plain {
				list = append(list, n.(string))
				continue
			}
			b, err := json.Marshal(n)
			if err == nil {
				list = append(list, string(b))
			}
		}
		out[key] = strings.Join(list, ",")
	default:
		out[key] = fmt.Sprint(x)
	}
}

// difference lists the fields that changed with their new values.
func difference(before, after map[string]string) string {
	var list []string
	for _, k := range slices.Sorted(maps.Keys(after)) {
		if before[k] != after[k] {
			list = append(list, k+"='"+after[k]+"'")
		}
	}
	for _, k := range slices.Sorted(maps.Keys(before)) {
		if _, kept := after[k]; !kept && len(after) > 0 {
			list = append(list, k+"=''")
		}
	}
	return strings.Join(list, ", ")
}
