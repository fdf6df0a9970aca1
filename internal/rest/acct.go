package rest

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/status"
)

const (
	rootAccount = "root"
	normalQOS   = "normal"
)

var associationParameters = []parameter{
	{"account", "name of the account"}, {"cluster", "name of the cluster"}, {"partition", "name of the partition"},
	{"user", "name of the user; empty: the account's own"},
}

// acct reads what accounting is configured with. source and list are for errors.
func (r *request) acct(source, list string) (*status.AcctState, error) {
	s, err := r.session.client.Associations(r.ctx())
	if err != nil {
		return nil, refusal(err, source, full).listing(list)
	}
	if !slices.ContainsFunc(s.Accounts, func(a status.AcctAccount) bool { return a.Name == rootAccount }) {
		root := status.AcctAccount{Name: rootAccount, Description: "default root account", Organization: rootAccount}
		s.Accounts = append([]status.AcctAccount{root}, s.Accounts...)
	}
	if len(s.QOS) == 0 {
		s.QOS = []status.AcctQOS{{Name: normalQOS, Description: "Normal QOS default"}}
	}
	return s, nil
}

// association is the association of a user, or of an account itself if user is empty.
type association struct {
	account, parent, user, partition string

	limits     *status.Limits
	qos        []string
	defaultQOS string
	isDefault  bool
}

// associations returns those of all accounts and users, in the order of the accounts.
func associations(s *status.AcctState) []association {
	var out []association
	for i := range s.Accounts {
		a := &s.Accounts[i]
		parent := cmp.Or(a.Parent, rootAccount)
		if a.Name == rootAccount {
			parent = ""
		}
		out = append(
			out,
			association{account: a.Name, parent: parent, limits: &a.Limits, qos: a.QOS, defaultQOS: a.DefaultQOS},
		)
		for j := range s.Users {
			out = append(out, associationsIn(a.Name, &s.Users[j])...)
		}
	}
	return out
}

// associationsIn returns the associations of the user with the account: one for each
// partition with settings of its own.
func associationsIn(account string, u *status.AcctUser) []association {
	base := association{account: account, user: u.Name, limits: &status.Limits{}, defaultQOS: u.DefaultQOS,
		isDefault: u.DefaultAccount == account}
	var out []association
	for i := range u.Associations {
		if a := &u.Associations[i]; a.Account == account {
			one := base
			one.partition, one.limits, one.qos = a.Partition, &a.Limits, a.QOS
			one.defaultQOS = cmp.Or(a.DefaultQOS, u.DefaultQOS)
			out = append(out, one)
		}
	}
	if len(out) == 0 && slices.Contains(u.Accounts, account) {
		out = append(out, base)
	}
	return out
}

// short returns the four members that name an association.
func (a *association) short(cluster string) format.Object {
	return format.Object{
		{Name: "account", Value: a.account}, {Name: "cluster", Value: cluster},
		{Name: "partition", Value: textOrNull(a.partition)}, {Name: "user", Value: textOrNull(a.user)},
	}
}

func textOrNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func listAssociations(r *request) ([]byte, error) {
	s, err := r.acct("slurmdb_associations_get", "associations")
	if err != nil {
		return nil, err
	}
	return r.document("associations", forms(r.selectAssociations(s), r.laterAssociation)), nil
}

func getAssociation(r *request) ([]byte, error) {
	s, err := r.acct("slurmdb_associations_get", "associations")
	if err != nil {
		return nil, err
	}
	found := r.selectAssociations(s)
	switch {
	case len(found) > 1:
		return nil, &failure{code: 400, number: errBadQuery, list: "associations",
			description: "Ambiguous request: More than 1 association would have been dumped."}
	case len(found) == 0:
		return nil, nothingFound("slurmdb_associations_get", "associations", 0)
	}
	return r.document("associations", forms(found, r.laterAssociation)), nil
}

func (r *request) selectAssociations(s *status.AcctState) []any {
	q := r.URL.Query()
	differs := func(name, v string) bool { return q.Has(name) && q.Get(name) != v }
	found := []any{}
	for _, a := range associations(s) {
		if differs("account", a.account) || differs("user", a.user) || differs("partition", a.partition) ||
			differs("cluster", s.Cluster) {
			continue
		}
		found = append(found, a.object(s.Cluster))
	}
	return found
}

func (a *association) object(cluster string) format.Object {
	l := a.limits
	qos := []any{}
	for _, q := range a.qos {
		qos = append(qos, q)
	}
	if len(qos) == 0 {
		qos = append(qos, normalQOS)
	}
	isDefault := 0
	if a.isDefault {
		isDefault = 1
	}
	share := cmp.Or(l.Share, 1)
	return format.Object{
		{Name: "account", Value: a.account},
		{Name: "cluster", Value: cluster},
		{Name: "default", Value: format.Object{{Name: "qos", Value: textOrNull(a.defaultQOS)}}},
		{
			Name:  "flags",
			Value: []any{},
		},
		{Name: "max", Value: associationMaxima(l)},
		{Name: "is_default", Value: isDefault},
		{Name: "min", Value: format.Object{{Name: "priority_threshold", Value: nil}}},
		{Name: "parent_account", Value: textOrNull(a.parent)},
		{Name: "partition", Value: textOrNull(a.partition)},
		{Name: "priority", Value: orNull(l.Priority)},
		{Name: "qos", Value: qos},
		{Name: "shares_raw", Value: share},
		{Name: "usage", Value: nil},
		{Name: "user", Value: textOrNull(a.user)},
	}
}

func associationMaxima(l *status.Limits) format.Object {
	return format.Object{
		{Name: "jobs", Value: format.Object{
			{Name: "per", Value: format.Object{
				{Name: "count", Value: orNull(int64(l.GrpJobs))},
				{Name: "accruing", Value: nil},
				{
					Name:  "submitted",
					Value: orNull(int64(l.GrpSubmitJobs)),
				},
				{Name: "wall_clock", Value: orNull(int64(l.MaxWall))},
			}},
			{Name: "active", Value: orNull(int64(l.MaxJobs))}, {Name: "accruing", Value: nil},
			{Name: "total", Value: orNull(int64(l.MaxSubmitJobs))},
		}},
		{Name: "tres", Value: format.Object{
			{Name: "total", Value: tresList(l.GrpTRES)},
			{Name: "minutes", Value: format.Object{
				{Name: "per", Value: format.Object{{Name: "job", Value: tresList(l.MaxTRESMins)}}},
				{Name: "total", Value: tresList(l.GrpTRESMins)},
			}},
			{Name: "group", Value: format.Object{
				{Name: "minutes", Value: tresList(l.GrpTRESMins)}, {Name: "active", Value: tresList(l.GrpTRESRunMins)},
			}},
			{Name: "per", Value: format.Object{
				{Name: "job", Value: tresList(l.MaxTRES)}, {Name: "node", Value: tresList(l.MaxTRESPerNode)},
			}},
		}},
		{Name: "per", Value: format.Object{
			{Name: "account", Value: format.Object{{Name: "wall_clock", Value: orNull(int64(l.GrpWall))}}},
		}},
	}
}

// tresList returns counts of TRES, ordered as in Slurm.
func tresList(counts map[string]int64) []any {
	text := ""
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		text += "," + name + "=" + strconv.FormatInt(counts[name], 10)
	}
	return format.TRESObjects(text)
}

func listUsers(r *request) ([]byte, error) { return r.users("") }

func getUser(r *request) ([]byte, error) { return r.users(r.PathValue("name")) }

func (r *request) users(name string) ([]byte, error) {
	s, err := r.acct("slurmdb_users_get", "users")
	if err != nil {
		return nil, err
	}
	found := userObjects(s, name)
	if len(found) == 0 && name != "" {
		return nil, nothingFound("slurmdb_users_get", "users", 0)
	}
	return r.document("users", forms(found, r.laterUser)), nil
}

func userObjects(s *status.AcctState, name string) []any {
	all := associations(s)
	found := []any{}
	for i := range s.Users {
		u := &s.Users[i]
		if name != "" && u.Name != name {
			continue
		}
		own, coordinated := []any{}, []any{}
		for j := range all {
			if all[j].user == u.Name {
				own = append(own, all[j].short(s.Cluster))
			}
		}
		for j := range s.Accounts {
			if slices.Contains(s.Accounts[j].Coordinators, u.Name) {
				coordinated = append(
					coordinated,
					format.Object{{Name: "name", Value: s.Accounts[j].Name}, {Name: "direct", Value: 1}},
				)
			}
		}
		found = append(found, format.Object{
			{Name: "administrator_level", Value: cmp.Or(u.AdminLevel, "None")}, {Name: "associations", Value: own},
			{Name: "coordinators", Value: coordinated},
			{Name: "default", Value: format.Object{
				{Name: "account", Value: textOrNull(u.DefaultAccount)}, {Name: "wckey", Value: u.DefaultWCKey},
			}},
			{Name: "flags", Value: []any{}}, {Name: "name", Value: u.Name},
		})
	}
	return found
}

func listAccounts(r *request) ([]byte, error) { return r.accounts("") }

func getAccount(r *request) ([]byte, error) { return r.accounts(r.PathValue("name")) }

func (r *request) accounts(name string) ([]byte, error) {
	s, err := r.acct("slurmdb_accounts_get", "accounts")
	if err != nil {
		return nil, err
	}
	found := accountObjects(s, name)
	if len(found) == 0 && name != "" {
		return nil, nothingFound("slurmdb_accounts_get", "accounts", 0)
	}
	return r.document("accounts", forms(found, r.laterAccount)), nil
}

func accountObjects(s *status.AcctState, name string) []any {
	all := associations(s)
	found := []any{}
	for i := range s.Accounts {
		a := &s.Accounts[i]
		if name != "" && a.Name != name {
			continue
		}
		own, coordinators := []any{}, []any{}
		for j := range all {
			if all[j].account == a.Name {
				own = append(own, all[j].short(s.Cluster))
			}
		}
		for _, user := range a.Coordinators {
			coordinators = append(coordinators, format.Object{{Name: "name", Value: user}, {Name: "direct", Value: 1}})
		}
		found = append(found, format.Object{
			{Name: "associations", Value: own}, {Name: "coordinators", Value: coordinators},
			{Name: "description", Value: a.Description}, {Name: "name", Value: a.Name},
			{Name: "organization", Value: a.Organization}, {Name: "flags", Value: []any{}},
		})
	}
	return found
}
