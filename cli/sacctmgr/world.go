package sacctmgr

import (
	"reflect"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/translate/status"
)

// root is the account above all others, which every cluster has.
const root = "root"

// world is the state a command begins with and what it makes of it.
type world struct {
	cluster  string
	accounts map[string]*status.AcctAccount
	users    map[string]*status.AcctUser
	qos      map[string]*status.AcctQOS
	before   *status.AcctState
}

func newWorld(s *status.AcctState) *world {
	w := &world{cluster: s.Cluster, before: s, accounts: map[string]*status.AcctAccount{}, users: map[string]*status.AcctUser{}, qos: map[string]*status.AcctQOS{}}
	for i := range s.Accounts {
		a := s.Accounts[i]
		a.Coordinators, a.QOS = slices.Clone(a.Coordinators), slices.Clone(a.QOS)
		w.accounts[a.Name] = &a
	}
	for i := range s.Users {
		u := s.Users[i]
		u.Accounts, u.Associations = slices.Clone(u.Accounts), slices.Clone(u.Associations)
		w.users[u.Name] = &u
	}
	for i := range s.QOS {
		q := s.QOS[i]
		w.qos[q.Name] = &q
	}
	return w
}

// accountNames are all accounts in the order of the tree: an account, then
// those below it, by name.
func (w *world) accountNames() []string {
	children := map[string][]string{}
	for _, name := range sortedNames(w.accounts) {
		if name != root {
			children[w.parent(name)] = append(children[w.parent(name)], name)
		}
	}
	out := []string{root}
	var below func(parent string)
	below = func(parent string) {
		for _, name := range children[parent] {
			out = append(out, name)
			below(name)
		}
	}
	below(root)
	return out
}

// parent is the account above; root where it is not known.
func (w *world) parent(name string) string {
	a := w.accounts[name]
	if a == nil || a.Parent == "" || a.Parent == name || w.accounts[a.Parent] == nil {
		return root
	}
	return a.Parent
}

// depth is how far below root an account is.
func (w *world) depth(name string) int {
	n := 0
	for name != root && n < 100 {
		name = w.parent(name)
		n++
	}
	return n
}

func (w *world) hasAccount(name string) bool { return name == root || w.accounts[name] != nil }

// member tells whether the user has an association with the account.
func member(u *status.AcctUser, account string) bool {
	return slices.Contains(accountsOf(u), account)
}

// seatRoot gives the user root, who is named and in no account, what Slurm has
// of him from the beginning: the association with the account root.
func (w *world) seatRoot(names []string) {
	if u := w.users[root]; u != nil && slices.Contains(names, root) && len(accountsOf(u)) == 0 {
		u.DefaultAccount = root
	}
}

// accountsOf are the accounts the user is in, by name.
func accountsOf(u *status.AcctUser) []string {
	out := slices.Clone(u.Accounts)
	if u.DefaultAccount != "" && !slices.Contains(out, u.DefaultAccount) {
		out = append(out, u.DefaultAccount)
	}
	for _, a := range u.Associations {
		if !slices.Contains(out, a.Account) {
			out = append(out, a.Account)
		}
	}
	slices.Sort(out)
	return out
}

// members are the users of an account, by name.
func (w *world) members(account string) []*status.AcctUser {
	var out []*status.AcctUser
	for _, name := range sortedNames(w.users) {
		if member(w.users[name], account) {
			out = append(out, w.users[name])
		}
	}
	return out
}

// assoc is the entry of the user for an account; made if it has none.
func assoc(u *status.AcctUser, account, partition string) *status.AcctAssociation {
	for i := range u.Associations {
		if a := &u.Associations[i]; a.Account == account && a.Partition == partition {
			return a
		}
	}
	u.Associations = append(u.Associations, status.AcctAssociation{Account: account, Partition: partition})
	return &u.Associations[len(u.Associations)-1]
}

// associations are the user's in an account: the plain one, and those of
// partitions.
func associations(u *status.AcctUser, account string) []status.AcctAssociation {
	var out []status.AcctAssociation
	for _, a := range u.Associations {
		if a.Account == account {
			out = append(out, a)
		}
	}
	if len(out) == 0 {
		out = append(out, status.AcctAssociation{Account: account})
	}
	slices.SortStableFunc(out, func(a, b status.AcctAssociation) int { return strings.Compare(a.Partition, b.Partition) })
	return out
}

func sortedNames[T any](m map[string]T) []string {
	out := make([]string, 0, len(m))
	for name := range m {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// changes are what is to be written: accounts from the root down, then QOS,
// then users; deletions last and from the leaves up.
func (w *world) changes() []status.AcctChange {
	var out, gone []status.AcctChange
	old := map[string]*status.AcctAccount{}
	for i := range w.before.Accounts {
		a := &w.before.Accounts[i]
		old[a.Name] = a
		if w.accounts[a.Name] == nil {
			gone = append(gone, status.AcctChange{Delete: true, Account: a})
		}
	}
	for _, q := range sortedNames(w.qos) {
		i := slices.IndexFunc(w.before.QOS, func(b status.AcctQOS) bool { return b.Name == q })
		if i < 0 || !reflect.DeepEqual(*w.qos[q], w.before.QOS[i]) {
			out = append(out, status.AcctChange{QOS: w.qos[q]})
		}
	}
	for _, name := range w.accountNames() {
		if a := w.accounts[name]; a != nil && (old[name] == nil || !reflect.DeepEqual(*a, *old[name])) {
			out = append(out, status.AcctChange{Account: a})
		}
	}
	for i := range w.before.Users {
		u := &w.before.Users[i]
		if now := w.users[u.Name]; now != nil && !reflect.DeepEqual(*now, *u) {
			out = append(out, status.AcctChange{User: now})
		}
	}
	for i := range w.before.QOS {
		if q := &w.before.QOS[i]; w.qos[q.Name] == nil {
			gone = append(gone, status.AcctChange{Delete: true, QOS: q})
		}
	}
	return append(out, gone...)
}
