package rest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"

	"github.com/berth-hpc/berth/translate/status"
)

// edit is a change of what accounting is configured with. The cluster makes all of it or
// none, and decides whether the caller may.
type edit struct {
	before, now *status.AcctState
}

// edit reads what accounting is configured with. source is for errors.
func (r *request) edit(source string) (*edit, error) {
	s, err := r.session.client.Associations(r.ctx())
	if err != nil {
		return nil, refusal(err, source, full)
	}
	data, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	now := new(status.AcctState)
	return &edit{s, now}, json.Unmarshal(data, now)
}

// write makes the changes.
func (r *request) write(e *edit, source string) error {
	list := e.changes()
	if len(list) == 0 {
		return nil
	}
	if err := r.session.client.Manage(r.ctx(), list); err != nil {
		return refusal(err, source, full)
	}
	return nil
}

// changes returns QOS first, then accounts, then users, and deletions at the end.
func (e *edit) changes() []status.AcctChange {
	var out, gone []status.AcctChange
	out, gone = changesOf(out, gone, e.before.QOS, e.now.QOS, func(q *status.AcctQOS) (string, status.AcctChange) {
		return q.Name, status.AcctChange{QOS: q}
	})
	out, gone = changesOf(out, gone, e.before.Accounts, e.now.Accounts,
		func(a *status.AcctAccount) (string, status.AcctChange) { return a.Name, status.AcctChange{Account: a} })
	out, gone = changesOf(out, gone, e.before.Users, e.now.Users,
		func(u *status.AcctUser) (string, status.AcctChange) { return u.Name, status.AcctChange{User: u} })
	return append(out, gone...)
}

// changesOf adds the entries of now that differ from before to out, and the deletion of those
// that are not in now to gone.
func changesOf[T any](
	out, gone []status.AcctChange, before, now []T, as func(*T) (string, status.AcctChange),
) (changed, deleted []status.AcctChange) {
	old := map[string]*T{}
	for i := range before {
		name, _ := as(&before[i])
		old[name] = &before[i]
	}
	for i := range now {
		name, c := as(&now[i])
		if o := old[name]; o == nil || !reflect.DeepEqual(*o, now[i]) {
			out = append(out, c)
		}
		delete(old, name)
	}
	for i := range before {
		if name, c := as(&before[i]); old[name] != nil {
			c.Delete = true
			gone = append(gone, c)
		}
	}
	return out, gone
}

func (e *edit) user(name string) *status.AcctUser {
	i := slices.IndexFunc(e.now.Users, func(u status.AcctUser) bool { return u.Name == name })
	if i < 0 {
		return nil
	}
	return &e.now.Users[i]
}

func (e *edit) account(name string) *status.AcctAccount {
	i := slices.IndexFunc(e.now.Accounts, func(a status.AcctAccount) bool { return a.Name == name })
	if i < 0 {
		return nil
	}
	return &e.now.Accounts[i]
}

// knownUser returns the user, or an error: users of a cluster have a uid, which requests
// cannot give them.
func (e *edit) knownUser(name string) (*status.AcctUser, error) {
	if u := e.user(name); u != nil {
		return u, nil
	}
	return nil, &failure{code: http.StatusBadRequest, number: errUnspecified,
		message: fmt.Sprintf("%q is not a user of this cluster; an administrator creates one as a User object", name)}
}

// knownAccount returns the account, or an error. That of root exists without an object.
func (e *edit) knownAccount(name string) (*status.AcctAccount, error) {
	if a := e.account(name); a != nil {
		return a, nil
	}
	if name != rootAccount {
		return nil, noAccount(name)
	}
	root := status.AcctAccount{Name: rootAccount, Description: "default root account", Organization: rootAccount}
	e.now.Accounts = append(e.now.Accounts, root)
	return &e.now.Accounts[len(e.now.Accounts)-1], nil
}

func noAccount(name string) *failure {
	return &failure{code: http.StatusBadRequest, number: errUnspecified,
		message: fmt.Sprintf("there is no account %q", name)}
}

// setter applies one entry of a list in the body.
type setter func(e *edit, r *request, l leaves) error

// post returns the handler that applies the entries of the list with the name.
func post(name, source string, set setter) func(*request) ([]byte, error) {
	return func(r *request) ([]byte, error) {
		list, err := entries(r.body, name)
		if err != nil {
			return nil, err
		}
		e, err := r.edit(source)
		if err != nil {
			return nil, err
		}
		for _, l := range list {
			if err := set(e, r, l); err != nil {
				return nil, err
			}
		}
		if err := r.write(e, source); err != nil {
			return nil, err
		}
		return encode(r.head()), nil
	}
}

// Levels of administrators.
var adminLevels = map[string]string{"None": "", "Operator": "Operator", "Administrator": "Administrator"}

func setUser(e *edit, _ *request, l leaves) error {
	var name, account, wckey string
	if ok, err := l.take("name", &name); err != nil || !ok || name == "" {
		return cmp.Or[error](err, missingField("name", "slurmdb_users_add", 0))
	}
	u, err := e.knownUser(name)
	if err != nil {
		return err
	}
	var level []string
	if ok, err := l.take("administrator_level", &level); err != nil {
		return err
	} else if ok && len(level) > 0 {
		value, known := adminLevels[level[0]]
		if !known || len(level) > 1 {
			return badField("administrator_level")
		}
		u.AdminLevel = value
	}
	if ok, err := l.take("default.account", &account); err != nil {
		return err
	} else if ok && account != "" && account != u.DefaultAccount {
		if err := makeDefault(u, account); err != nil {
			return err
		}
	}
	if ok, err := l.take("default.wckey", &wckey); err != nil {
		return err
	} else if ok && wckey != "" {
		u.DefaultWCKey = wckey
	}
	// Associations, coordinators and wckeys have paths of their own.
	return l.none("associations", "coordinators", "wckeys", "flags")
}

// makeDefault makes an account the user's default one. The user stays in the old one.
func makeDefault(u *status.AcctUser, account string) error {
	if !slices.Contains(accountsOf(u), account) {
		return &failure{code: http.StatusBadRequest, number: errUnspecified,
			message: fmt.Sprintf("%s has no association with the account %q", u.Name, account)}
	}
	if u.DefaultAccount != "" && !slices.Contains(u.Accounts, u.DefaultAccount) {
		u.Accounts = append(u.Accounts, u.DefaultAccount)
	}
	u.DefaultAccount = account
	return nil
}

// accountsOf returns the accounts of the user.
func accountsOf(u *status.AcctUser) []string {
	out := slices.Clone(u.Accounts)
	if u.DefaultAccount != "" {
		out = append(out, u.DefaultAccount)
	}
	for i := range u.Associations {
		out = append(out, u.Associations[i].Account)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func setAccount(e *edit, _ *request, l leaves) error {
	var name string
	if ok, err := l.take("name", &name); err != nil || !ok || name == "" {
		return cmp.Or[error](err, missingField("name", "slurmdb_accounts_add", 0))
	}
	a := e.account(name)
	if a == nil {
		e.now.Accounts = append(e.now.Accounts, status.AcctAccount{Name: name, Description: name, Organization: name})
		a = &e.now.Accounts[len(e.now.Accounts)-1]
	}
	for path, to := range map[string]*string{"description": &a.Description, "organization": &a.Organization} {
		if _, err := l.take(path, to); err != nil {
			return err
		}
	}
	var coordinators []json.RawMessage
	if ok, err := l.take("coordinators", &coordinators); err != nil {
		return err
	} else if ok && len(coordinators) > 0 {
		a.Coordinators = nil
		for _, raw := range coordinators {
			var one struct{ Name string }
			if json.Unmarshal(raw, &one) != nil || one.Name == "" {
				return badField("coordinators")
			}
			a.Coordinators = append(a.Coordinators, one.Name)
		}
	}
	return l.none("associations", "flags")
}

func setQOS(e *edit, _ *request, l leaves) error {
	var name string
	if ok, err := l.take("name", &name); err != nil || !ok || name == "" {
		return cmp.Or[error](err, missingField("name", "slurmdb_qos_add", 0))
	}
	q := e.qos(name)
	var mode []string
	var factor, threshold json.Number
	for path, to := range map[string]any{"description": &q.Description, "priority": &q.Priority, "flags": &q.Flags,
		"preempt.list": &q.Preempt, "preempt.mode": &mode, "preempt.exempt_time": &q.PreemptExempt,
		"limits.grace_time": &q.GraceTime, "usage_factor": &factor, "usage_threshold": &threshold} {
		if _, err := l.take(path, to); err != nil {
			return err
		}
	}
	if len(mode) == 1 {
		q.PreemptMode = mode[0]
	}
	if factor != "" && (factor != "1.0" || q.UsageFactor != "") {
		q.UsageFactor = string(factor)
	}
	if threshold != "" {
		q.UsageThres = string(threshold)
	}
	if err := l.takeLimits(limitsOfQOS, &q.Limits); err != nil {
		return err
	}
	return l.none("id")
}

// qos returns the QOS, which it adds if there is none. The first one that is added ends the
// QOS "normal" that a cluster without any has, so that this one is added too.
func (e *edit) qos(name string) *status.AcctQOS {
	if len(e.now.QOS) == 0 && name != normalQOS {
		e.now.QOS = append(e.now.QOS, status.AcctQOS{Name: normalQOS, Description: "Normal QOS default"})
	}
	i := slices.IndexFunc(e.now.QOS, func(q status.AcctQOS) bool { return q.Name == name })
	if i < 0 {
		i = len(e.now.QOS)
		e.now.QOS = append(e.now.QOS, status.AcctQOS{Name: name, Description: name})
	}
	return &e.now.QOS[i]
}
