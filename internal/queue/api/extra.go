package api

import (
	"net/url"
	"strconv"

	"github.com/berth-hpc/berth/internal/queue/refusal"
	"github.com/berth-hpc/berth/internal/queue/table"
	"github.com/berth-hpc/berth/translate/status"
)

// extra reads the filters of GET jobs that are seldom given.
func (a *API) extra(q *table.Query, v url.Values) {
	e := table.Extra{Reservations: list(v, "reservation"), WCKeys: list(v, "wckey"), Licenses: list(v, "licenses")}
	if v.Get("hide") == "true" {
		for _, p := range a.Directory.Partitions() {
			if p.Spec.Hidden {
				e.Hidden = append(e.Hidden, p.Name)
			}
		}
	}
	if len(e.Reservations)+len(e.WCKeys)+len(e.Licenses)+len(e.Hidden) > 0 {
		q.Extra = &e
	}
}

// people makes names of the users given by number, and tells which of all
// those given there are not. If none is there, no row is meant.
func (a *API) people(q *table.Query) (unknown []string) {
	if len(q.Users) == 0 {
		return nil
	}
	known := []string{nobody}
	for _, text := range q.Users {
		if uid, err := strconv.ParseInt(text, 10, 64); err == nil {
			if u := a.Directory.UserByUID(uid); u != nil {
				known = append(known, u.Name)
				continue
			}
		} else if a.Directory.User(text) != nil {
			known = append(known, text)
			continue
		}
		unknown = append(unknown, text)
	}
	q.Users = known
	return unknown
}

// userOfJobs takes the UserID from what is to be set: it changes nothing, but
// chooses among jobs of one name.
func (a *API) userOfJobs(op *status.Operation) error {
	const key = "UserID"
	user, given := op.Set[key]
	if !given {
		return nil
	}
	if _, err := strconv.ParseUint(user, 10, 32); err != nil && a.Directory.User(user) == nil {
		return refusal.Text("Invalid " + key + ": " + user)
	}
	if delete(op.Set, key); len(op.Set) == 0 {
		return refusal.NoChanges
	}
	if len(op.Names) > 0 {
		op.Users = []string{user}
	}
	return nil
}
