package rest

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"

	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/status"
)

// setAssociation applies an association of a user, or of an account itself if it names no
// user.
func setAssociation(e *edit, r *request, l leaves) error {
	var account, user, partition, cluster, parent string
	for path, to := range map[string]*string{"account": &account, "user": &user, "partition": &partition,
		"cluster": &cluster, "parent_account": &parent} {
		if _, err := l.take(path, to); err != nil {
			return err
		}
	}
	switch {
	case account == "":
		return missingField("account", "slurmdb_associations_add", http.StatusBadRequest)
	case cluster != "" && cluster != r.session.cluster:
		return invalid(errUnspecified, "this is the cluster %s, not %q", r.session.cluster, cluster)
	}
	isDefault := 0
	if _, err := l.take("is_default", &bit{&isDefault}); err != nil {
		return err
	}
	var limits *status.Limits
	var qos *[]string
	var defaultQOS *string
	if user != "" {
		x, err := e.userAssociation(user, account, partition, isDefault == 1)
		if err != nil {
			return err
		}
		limits, qos, defaultQOS = &x.Limits, &x.QOS, &x.DefaultQOS
	} else {
		a, err := e.accountBelow(account, parent)
		if err != nil {
			return err
		}
		limits, qos, defaultQOS = &a.Limits, &a.QOS, &a.DefaultQOS
	}
	if err := takeQOS(l, qos, defaultQOS); err != nil {
		return err
	}
	if err := l.takeLimits(associationLimits, limits); err != nil {
		return err
	}
	return l.none("usage", "id", "flags", "lineage", "comment", "accounting")
}

// userAssociation returns the association of a user, which it adds if there is none.
func (e *edit) userAssociation(user, account, partition string, isDefault bool) (*status.AcctAssociation, error) {
	u, err := e.knownUser(user)
	if err != nil {
		return nil, err
	}
	if account != rootAccount && e.account(account) == nil {
		return nil, noAccount(account)
	}
	x := associationOf(u, account, partition)
	if isDefault || u.DefaultAccount == "" {
		err = makeDefault(u, account)
	}
	return x, err
}

// accountBelow returns an account, which it moves below the parent unless that is "".
func (e *edit) accountBelow(name, parent string) (*status.AcctAccount, error) {
	if parent != "" && parent != rootAccount && e.account(parent) == nil {
		return nil, noAccount(parent)
	}
	a, err := e.knownAccount(name)
	if err != nil || parent == "" || name == rootAccount || parent == cmp.Or(a.Parent, rootAccount) {
		return a, err
	}
	for up := parent; up != "" && up != rootAccount; {
		if up == name {
			return nil, invalid(errUnspecified, "the account %q cannot be moved below itself", name)
		}
		above := e.account(up)
		if above == nil {
			break
		}
		up = above.Parent
	}
	a.Parent = parent
	return a, nil
}

// bit is a boolean, which documents of 22.05 write as a number.
type bit struct{ to *int }

// UnmarshalJSON decodes 0, 1, false and true.
func (f *bit) UnmarshalJSON(text []byte) error {
	switch string(text) {
	case "0", "false":
		*f.to = 0
	case "1", "true":
		*f.to = 1
	default:
		return fmt.Errorf("%s is not a boolean", text)
	}
	return nil
}

// takeQOS moves the list of QOS and the default QOS. Documents show the QOS "normal" for an
// association without a list, which does not make one.
func takeQOS(l leaves, qos *[]string, defaultQOS *string) error {
	var list []string
	if ok, err := l.take("qos", &list); err != nil {
		return err
	} else if ok && len(list) > 0 && (len(*qos) > 0 || !slices.Equal(list, []string{normalQOS})) {
		*qos = list
	}
	_, err := l.take("default.qos", defaultQOS)
	return err
}

// associationOf returns the user's association, which it adds if there is none.
func associationOf(u *status.AcctUser, account, partition string) *status.AcctAssociation {
	i := slices.IndexFunc(u.Associations, func(a status.AcctAssociation) bool {
		return a.Account == account && a.Partition == partition
	})
	if i < 0 {
		i = len(u.Associations)
		u.Associations = append(u.Associations, status.AcctAssociation{Account: account, Partition: partition})
	}
	if account != u.DefaultAccount && !slices.Contains(u.Accounts, account) {
		u.Accounts = append(u.Accounts, account)
	}
	return &u.Associations[i]
}

// leave removes the user from accounts. It refuses to remove the default account of a user
// who is in others.
func leave(u *status.AcctUser, left func(account string) bool) error {
	if u.DefaultAccount != "" && left(u.DefaultAccount) {
		if rest := slices.DeleteFunc(accountsOf(u), left); len(rest) > 0 {
			return &failure{code: http.StatusBadRequest, number: errUnspecified,
				message: fmt.Sprintf("%s is the default account of %s: change that first", u.DefaultAccount, u.Name)}
		}
		u.DefaultAccount = ""
	}
	u.Accounts = slices.DeleteFunc(u.Accounts, left)
	u.Associations = slices.DeleteFunc(u.Associations, func(a status.AcctAssociation) bool { return left(a.Account) })
	return nil
}

// deleteAssociation serves DELETE association, deleteAssociations DELETE associations.
func deleteAssociation(r *request) ([]byte, error)  { return r.removeAssociations(true) }
func deleteAssociations(r *request) ([]byte, error) { return r.removeAssociations(false) }

// removeAssociations removes the associations of users that the query selects. Those of
// accounts end with the account.
func (r *request) removeAssociations(single bool) ([]byte, error) {
	const source = "slurmdb_associations_remove"
	q := r.URL.Query()
	if q.Get("user") == "" && q.Get("account") == "" {
		return nil, &failure{code: http.StatusBadRequest, number: errBadQuery, source: source,
			description: "name a user or an account"}
	}
	e, err := r.edit(source)
	if err != nil {
		return nil, err
	}
	differs := func(name, v string) bool { return q.Has(name) && q.Get(name) != v }
	removed := []any{}
	for i := range e.now.Users {
		u := &e.now.Users[i]
		gone := map[string]bool{}
		for _, account := range accountsOf(u) {
			remaining := 0
			for _, a := range partsOf(u, account) {
				if differs("user", u.Name) || differs("account", account) || differs("partition", a.Partition) ||
					differs("cluster", e.now.Cluster) {
					remaining++
					continue
				}
				removed = append(removed, fmt.Sprintf("C = %-10s A = %-10s U = %-9s", e.now.Cluster, account, u.Name))
				u.Associations = slices.DeleteFunc(u.Associations, func(x status.AcctAssociation) bool {
					return x.Account == account && x.Partition == a.Partition
				})
			}
			gone[account] = remaining == 0
		}
		if err := leave(u, func(account string) bool { return gone[account] }); err != nil {
			return nil, err
		}
	}
	switch {
	case len(removed) == 0:
		return nil, errNotModified
	case single && len(removed) > 1:
		return nil, &failure{code: http.StatusBadRequest, number: errBadQuery, source: source,
			description: "Ambiguous request: More than 1 association would have been removed."}
	}
	if err := r.write(e, source); err != nil {
		return nil, err
	}
	return r.document("removed_associations", removed), nil
}

// partsOf returns the user's associations with an account; without an entry there is one for
// every partition.
func partsOf(u *status.AcctUser, account string) []status.AcctAssociation {
	var out []status.AcctAssociation
	for _, a := range u.Associations {
		if a.Account == account {
			out = append(out, a)
		}
	}
	if len(out) == 0 {
		out = append(out, status.AcctAssociation{Account: account})
	}
	return out
}

// deleteUser serves DELETE user/NAME. The user's object, which has the uid, stays.
func deleteUser(r *request) ([]byte, error) {
	const source = "slurmdb_users_remove"
	e, err := r.edit(source)
	if err != nil {
		return nil, err
	}
	u := e.user(r.PathValue("name"))
	if u == nil || len(accountsOf(u)) == 0 && len(u.WCKeys) == 0 {
		return nil, errNotModified
	}
	u.Accounts, u.Associations, u.DefaultAccount, u.WCKeys, u.DefaultWCKey = nil, nil, "", nil, ""
	if err := r.write(e, source); err != nil {
		return nil, err
	}
	return r.document("removed_users", []any{u.Name}), nil
}

// errUnchanged is the number of a deletion of an account that does not exist.
const errUnchanged = 1900

// deleteAccount serves DELETE account/NAME.
func deleteAccount(r *request) ([]byte, error) {
	const source = "slurmdb_accounts_remove"
	e, err := r.edit(source)
	if err != nil {
		return nil, err
	}
	name := r.PathValue("name")
	if e.account(name) == nil {
		return nil, &failure{code: http.StatusOK, number: errUnchanged, source: source}
	}
	for i := range e.now.Accounts {
		if a := &e.now.Accounts[i]; a.Parent == name {
			return nil, &failure{code: http.StatusBadRequest, number: errUnspecified, source: source,
				message: fmt.Sprintf("the account %q is below %q: delete or move that first", a.Name, name)}
		}
	}
	for i := range e.now.Users {
		if err := leave(&e.now.Users[i], func(account string) bool { return account == name }); err != nil {
			return nil, err
		}
	}
	e.now.Accounts = slices.DeleteFunc(e.now.Accounts, func(a status.AcctAccount) bool { return a.Name == name })
	if err := r.write(e, source); err != nil {
		return nil, err
	}
	return encode(r.head()), nil
}

// deleteQOS serves DELETE qos/NAME.
func deleteQOS(r *request) ([]byte, error) {
	const source = "slurmdb_qos_remove"
	e, err := r.edit(source)
	if err != nil {
		return nil, err
	}
	name := r.PathValue("name")
	left := slices.DeleteFunc(slices.Clone(e.now.QOS), func(q status.AcctQOS) bool { return q.Name == name })
	if len(left) == len(e.now.QOS) {
		return nil, &failure{number: errNothingFound, description: "Nothing found", source: source}
	}
	e.now.QOS = left
	if err := r.write(e, source); err != nil {
		return nil, err
	}
	return r.document("removed_qos", []any{name}), nil
}

// setWCKey applies a wckey of a user.
func setWCKey(e *edit, _ *request, l leaves) error {
	var name, user, cluster string
	for path, to := range map[string]*string{"name": &name, "user": &user, "cluster": &cluster} {
		if _, err := l.take(path, to); err != nil {
			return err
		}
	}
	switch {
	case name == "":
		return missingField("name", "slurmdb_wckeys_add", 0)
	case user == "":
		return missingField("user", "slurmdb_wckeys_add", 0)
	}
	u, err := e.knownUser(user)
	if err != nil {
		return err
	}
	if !slices.Contains(u.WCKeys, name) {
		u.WCKeys = append(u.WCKeys, name)
	}
	return l.none("id", "accounting", "flags")
}

// deleteWCKey serves DELETE wckey/NAME: no user has it any more.
func deleteWCKey(r *request) ([]byte, error) {
	const source = "slurmdb_wckeys_remove"
	e, err := r.edit(source)
	if err != nil {
		return nil, err
	}
	name, found := r.PathValue("name"), false
	for i := range e.now.Users {
		u := &e.now.Users[i]
		if !slices.Contains(u.WCKeys, name) {
			continue
		}
		found = true
		u.WCKeys = slices.DeleteFunc(u.WCKeys, func(k string) bool { return k == name })
		if u.DefaultWCKey == name {
			u.DefaultWCKey = ""
		}
	}
	if !found {
		return nil, nothingFound(source, "deleted_wckeys", 0)
	}
	if err := r.write(e, source); err != nil {
		return nil, err
	}
	return r.document("deleted_wckeys", []any{name}), nil
}

// setConfig serves POST config, which has all of the lists, and makes all changes or none.
func setConfig(r *request) ([]byte, error) {
	const source = "slurmdb_config_set"
	e, err := r.edit(source)
	if err != nil {
		return nil, err
	}
	for _, x := range []struct {
		name string
		set  setter
	}{{"qos", setQOS}, {"QOS", setQOS}, {"accounts", setAccount}, {"associations", setAssociation},
		{"wckeys", setWCKey}, {"users", setUser}} {
		list, err := entries(r.body, x.name)
		if f, ok := err.(*failure); ok && f.description == "Query parameter not found" { //nolint:errorlint // entries wraps none
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, l := range list {
			if err := x.set(e, r, l); err != nil {
				return nil, err
			}
		}
	}
	if err := r.write(e, source); err != nil {
		return nil, err
	}
	return encode(r.head()), nil
}

// fixed refuses a change of what the cluster itself defines.
func fixed(what string) func(*request) ([]byte, error) {
	return func(*request) ([]byte, error) {
		return nil, &failure{code: http.StatusBadRequest, number: errUnspecified, message: what}
	}
}

// accountingSchema returns the schema of a list of entries whose fields are those of the
// documents.
func accountingSchema(list string, required ...any) format.Object {
	item := per("type", "object", "additionalProperties", true, "required", required)
	properties := format.Object{}
	for _, name := range required {
		if text, ok := name.(string); ok {
			properties = append(properties, format.Member{Name: text, Value: per("type", "string")})
		}
	}
	item = append(item, format.Member{Name: "properties", Value: properties})
	return per("type", "object", "required", []any{list}, "properties",
		format.Object{{Name: list, Value: per("type", "array", "items", item)}})
}
