package sacctmgr

import (
	"reflect"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/translate/status"
)

// rootAccount is the account above all others, which every cluster has; rootUser
// is the user of that name.
const (
	rootAccount = "root"
	rootUser    = "root"
)

// normalQOS is the QOS of jobs that name none. It exists without an object as
// long as the cluster has no QOS objects.
const normalQOS = "normal"

// state is the accounts, users and QOS of a cluster: as they were read, and as a
// command edits them.
type state struct {
	cluster  string
	accounts map[string]*status.AcctAccount
	users    map[string]*status.AcctUser
	qos      map[string]*status.AcctQOS
	original *status.AcctState
}

func newState(original *status.AcctState) *state {
	s := &state{
		cluster: original.Cluster, original: original, accounts: map[string]*status.AcctAccount{},
		users: map[string]*status.AcctUser{}, qos: map[string]*status.AcctQOS{},
	}
	for i := range original.Accounts {
		a := original.Accounts[i]
		a.Coordinators, a.QOS = slices.Clone(a.Coordinators), slices.Clone(a.QOS)
		s.accounts[a.Name] = &a
	}
	for i := range original.Users {
		u := original.Users[i]
		u.Accounts, u.Associations = slices.Clone(u.Accounts), slices.Clone(u.Associations)
		s.users[u.Name] = &u
	}
	for i := range original.QOS {
		q := original.QOS[i]
		s.qos[q.Name] = &q
	}
	return s
}

// accountNames returns all accounts in the order of the tree: an account, then
// those below it, by name.
func (s *state) accountNames() []string {
	children := map[string][]string{}
	for _, name := range sortedNames(s.accounts) {
		if name != rootAccount {
			children[s.parent(name)] = append(children[s.parent(name)], name)
		}
	}
	out := []string{rootAccount}
	var appendChildren func(parent string)
	appendChildren = func(parent string) {
		for _, name := range children[parent] {
			out = append(out, name)
			appendChildren(name)
		}
	}
	appendChildren(rootAccount)
	return out
}

// parent returns the account above; root if that does not exist.
func (s *state) parent(name string) string {
	a := s.accounts[name]
	if a == nil || a.Parent == "" || a.Parent == name || s.accounts[a.Parent] == nil {
		return rootAccount
	}
	return a.Parent
}

// depth returns the number of accounts above.
func (s *state) depth(name string) int {
	n := 0
	for name != rootAccount && n < 100 {
		name = s.parent(name)
		n++
	}
	return n
}

func (s *state) hasAccount(name string) bool { return name == rootAccount || s.accounts[name] != nil }

// acceptsQOS reports whether name is a QOS, or the -1 that clears a list of
// them.
func (s *state) acceptsQOS(name string) bool {
	return s.qos[name] != nil || name == normalQOS || name == "-1"
}

// validQOS returns the names of all QOS.
func (s *state) validQOS() string {
	names := sortedNames(s.qos)
	if s.qos[normalQOS] == nil {
		names = append([]string{normalQOS}, names...)
	}
	return strings.Join(names, ",")
}

// materializeNormalQOS gives the QOS "normal" an object if the cluster has no
// QOS objects: it would cease to exist with the first one.
func (s *state) materializeNormalQOS() {
	if len(s.original.QOS) == 0 && s.qos[normalQOS] == nil {
		s.qos[normalQOS] = &status.AcctQOS{Name: normalQOS, Description: normalDescription}
	}
}

const normalDescription = "Normal QOS default"

// isMember reports whether the user has an association with the account.
func isMember(u *status.AcctUser, account string) bool {
	return slices.Contains(accountsOf(u), account)
}

// addRootUser adds the user root to the account root if names include the user
// and it is in no account: Slurm has that association from the beginning.
func (s *state) addRootUser(names []string) {
	if u := s.users[rootUser]; u != nil && slices.Contains(names, rootUser) && len(accountsOf(u)) == 0 {
		u.DefaultAccount = rootAccount
	}
}

// accountsOf returns the accounts of the user, by name.
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

// members returns the users of an account, by name.
func (s *state) members(account string) []*status.AcctUser {
	var out []*status.AcctUser
	for _, name := range sortedNames(s.users) {
		if isMember(s.users[name], account) {
			out = append(out, s.users[name])
		}
	}
	return out
}

// indexAssociation returns the index of the user's association with the account
// in the partition ("": in every one), or -1.
func indexAssociation(u *status.AcctUser, account, partition string) int {
	return slices.IndexFunc(u.Associations, func(a status.AcctAssociation) bool {
		return a.Account == account && a.Partition == partition
	})
}

// hasAssociation reports whether the user has the association. A member of an
// account without an entry for it has the one of every partition.
func hasAssociation(u *status.AcctUser, account, partition string) bool {
	if indexAssociation(u, account, partition) >= 0 {
		return true
	}
	inPartition := func(a status.AcctAssociation) bool { return a.Account == account && a.Partition != "" }
	return partition == "" && isMember(u, account) && !slices.ContainsFunc(u.Associations, inPartition)
}

// associationIn returns the user's association, which it adds if it is missing.
func associationIn(u *status.AcctUser, account, partition string) *status.AcctAssociation {
	i := indexAssociation(u, account, partition)
	if i < 0 {
		i = len(u.Associations)
		u.Associations = append(u.Associations, status.AcctAssociation{Account: account, Partition: partition})
	}
	return &u.Associations[i]
}

// associations returns the user's associations with an account, by partition.
// Without an entry there is one without settings.
func associations(u *status.AcctUser, account string) []status.AcctAssociation {
	out := filter(u.Associations, func(a status.AcctAssociation) bool { return a.Account == account })
	if len(out) == 0 {
		out = append(out, status.AcctAssociation{Account: account})
	}
	slices.SortStableFunc(out,
		func(a, b status.AcctAssociation) int { return strings.Compare(a.Partition, b.Partition) })
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

// changes returns what has to be written: QOS, accounts from the root down, and
// users; then deletions, in the order in which they were read.
func (s *state) changes() []status.AcctChange {
	out := s.changedQOS()
	out = append(out, s.changedAccounts()...)
	for i := range s.original.Users {
		u := &s.original.Users[i]
		if now := s.users[u.Name]; now != nil && !reflect.DeepEqual(*now, *u) {
			out = append(out, status.AcctChange{User: now})
		}
	}
	return append(out, s.deletions()...)
}

func (s *state) changedQOS() []status.AcctChange {
	var out []status.AcctChange
	for _, name := range sortedNames(s.qos) {
		i := slices.IndexFunc(s.original.QOS, func(q status.AcctQOS) bool { return q.Name == name })
		if i < 0 || !reflect.DeepEqual(*s.qos[name], s.original.QOS[i]) {
			out = append(out, status.AcctChange{QOS: s.qos[name]})
		}
	}
	return out
}

func (s *state) changedAccounts() []status.AcctChange {
	original := map[string]*status.AcctAccount{}
	for i := range s.original.Accounts {
		original[s.original.Accounts[i].Name] = &s.original.Accounts[i]
	}
	var out []status.AcctChange
	for _, name := range s.accountNames() {
		a := s.accounts[name]
		if a != nil && (original[name] == nil || !reflect.DeepEqual(*a, *original[name])) {
			out = append(out, status.AcctChange{Account: a})
		}
	}
	return out
}

func (s *state) deletions() []status.AcctChange {
	var out []status.AcctChange
	for i := range s.original.Accounts {
		if a := &s.original.Accounts[i]; s.accounts[a.Name] == nil {
			out = append(out, status.AcctChange{Delete: true, Account: a})
		}
	}
	for i := range s.original.QOS {
		if q := &s.original.QOS[i]; s.qos[q.Name] == nil {
			out = append(out, status.AcctChange{Delete: true, QOS: q})
		}
	}
	return out
}
