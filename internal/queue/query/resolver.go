package query

import (
	"context"
	"net/url"
	"slices"
	"strconv"

	"github.com/berth-hpc/berth/internal/authz"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/table"
)

// noUser is a name that no user has. A query for it matches no job.
const noUser = "\x00"

// Resolver resolves references to jobs and users. Safe for concurrent use.
type Resolver struct {
	Table     *table.Table
	Directory *directory.Directory
}

// Rows returns the rows that the reference is about, whatever their state.
func (r Resolver) Rows(ctx context.Context, ref Ref) []*table.Row {
	q := table.Query{AllStates: true}
	newRefAdder(&q).add(ref)
	return r.Table.Select(ctx, q)
}

// JobID returns the id of the one job that the reference is about: the task's own
// where a single task of an array is named. It returns -1 if there is none. A job that was
// admitted before the call has its row when JobID returns, see table.Table.Await.
func (r Resolver) JobID(ctx context.Context, ref Ref) int64 {
	r.Table.Await(ctx, table.Query{IDs: []int64{ref.ID}})
	if _, single := ref.Tasks.Single(); !single {
		return ref.ID
	}
	if rows := r.Rows(ctx, ref); len(rows) == 1 {
		return rows[0].ID
	}
	return noID
}

// ResolveUsers replaces the uids among the query's users by names. It drops users
// that do not exist and returns them; if none exists, no job matches.
func (r Resolver) ResolveUsers(q *table.Query) (unknown []string) {
	if len(q.Users) == 0 {
		return nil
	}
	names := []string{noUser}
	for _, text := range q.Users {
		if name, ok := r.userName(text); ok {
			names = append(names, name)
		} else {
			unknown = append(unknown, text)
		}
	}
	q.Users = names
	return unknown
}

// userName returns the name of the user that text names by name or uid.
func (r Resolver) userName(text string) (name string, ok bool) {
	uid, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return text, r.Directory.User(text) != nil
	}
	u := r.Directory.UserByUID(uid)
	if u == nil {
		return "", false
	}
	return u.Name, true
}

// Restrict limits the query to the jobs that the caller may see: to its own if
// PrivateData hides those of other users.
func (r Resolver) Restrict(q *table.Query, c *directory.Caller) {
	if r.Directory.Refusal(c.Roles(), authz.Job, authz.Read) == "" {
		return
	}
	visible := noUser
	if c.User != nil && (len(q.Users) == 0 || slices.Contains(q.Users, c.User.Name)) {
		visible = c.User.Name
	}
	q.Users = []string{visible}
}

// AddExtra adds the less common filters of GET jobs.
func (r Resolver) AddExtra(q *table.Query, v url.Values) {
	e := table.Extra{
		Reservations: List(v, "reservation"),
		WCKeys:       List(v, "wckey"),
		Licenses:     List(v, "licenses"),
	}
	if v.Get("hide") == "true" {
		for _, p := range r.Directory.Partitions() {
			if p.Spec.Hidden {
				e.Hidden = append(e.Hidden, p.Name)
			}
		}
	}
	if len(e.Reservations)+len(e.WCKeys)+len(e.Licenses)+len(e.Hidden) > 0 {
		q.Extra = &e
	}
}
