// Package server serves the accounting part of the queue API: records for sacct, usage
// for sreport, and the associations that sacctmgr reads and changes. The API server has
// authenticated the caller; PrivateData limits what a caller may see.
package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/internal/acct"
	"github.com/berth-hpc/berth/internal/acct/store"
	"github.com/berth-hpc/berth/internal/authz"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/queue/api"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/fairness"
	"github.com/berth-hpc/berth/internal/queue/response"
	"github.com/berth-hpc/berth/internal/queue/table"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/status"
)

// Server serves the part of the queue API that is about accounting. Safe for
// concurrent use.
type Server struct {
	Cluster  *control.Cluster
	Recorder *acct.Recorder
	Now      func() time.Time
	// NoDatabase is set in a process that cannot reach the database: the leader
	// serves its queries.
	NoDatabase bool

	queue    Queue
	searches chan struct{} // a semaphore of maxSearches
}

// Queue is the queue API, to which the paths are added.
type Queue interface {
	Table() *table.Table
	API() *api.API
	Handle(api.Route)
}

// maxSearches bounds the number of concurrent searches of the database, so that
// expensive ones leave the processors to planning.
const maxSearches = 2

// searchTimeout bounds one search, including the time that it waits for others.
const searchTimeout = 50 * time.Second

// Register adds the paths to q.
func (s *Server) Register(q Queue) {
	s.queue, s.searches = q, make(chan struct{}, maxSearches)
	search := func(pattern string, handler api.Handler, leaderOnly bool) {
		q.Handle(api.Route{Pattern: pattern, Class: fairness.Search, Handler: handler, LeaderOnly: leaderOnly})
	}
	const root = wire.QueueRoot
	search("GET "+root+"/records", s.records, s.NoDatabase)
	search("GET "+root+"/usage", s.usage, s.NoDatabase)
	search("GET "+root+"/events", s.events, s.NoDatabase)
	search("GET "+root+"/transactions", s.transactions, true)
	search("POST "+root+"/archives", s.archive, true)
	q.Handle(api.Route{Pattern: "GET " + root + "/associations", Handler: s.associations})
	q.Handle(api.Route{
		Pattern: "POST " + root + "/associations", Class: fairness.Operation, Handler: s.manage, LeaderOnly: true,
	})
}

// errDenied is Slurm's message.
const errDenied = "Access/permission denied"

// search runs one query of the database when fewer than maxSearches run.
func (s *Server) search(ctx context.Context, run func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, searchTimeout)
	defer cancel()
	select {
	case s.searches <- struct{}{}:
		defer func() { <-s.searches }()
		return run(ctx)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// records serves GET records?q=QUERY.
func (s *Server) records(w http.ResponseWriter, r *http.Request, c *directory.Caller) {
	q := &status.RecordQuery{}
	if !parseQuery(w, r, q) {
		return
	}
	users, groups := s.unknownOwners(q)
	if len(users)+len(groups) > 0 {
		none := s.answer(nil, "")
		none.UnknownUsers, none.UnknownGroups = users, groups
		response.JSON(w, r, none)
		return
	}
	if bad, all := s.unknownQOS(q.QOS); bad != "" {
		none := s.answer(nil, "")
		none.UnknownQOS, none.QOS = bad, all
		response.JSON(w, r, none)
		return
	}
	if !s.restrict(q, c) {
		response.JSON(w, r, s.answer(nil, ""))
		return
	}
	s.queue.Table().Await(r.Context(), table.Query{Users: q.Users})
	var list []status.Record
	var warning string
	err := s.search(r.Context(), func(ctx context.Context) (err error) {
		list, warning, err = s.Recorder.List(ctx, q)
		return err
	})
	if err != nil {
		s.fail(w, r, err)
		return
	}
	list = slices.DeleteFunc(
		list,
		func(x status.Record) bool { return !s.may(c, x.User, x.Account, authz.Records, authz.Read) },
	)
	response.JSON(w, r, s.answer(list, warning))
}

// unknownOwners returns the users and groups of q that do not exist.
func (s *Server) unknownOwners(q *status.RecordQuery) (users, groups []string) {
	if len(q.Users)+len(q.UserIDs)+len(q.Groups)+len(q.GroupIDs) == 0 {
		return nil, nil
	}
	names, ids := map[string]bool{"root": true}, map[int64]bool{0: true}
	groupNames, groupIDs := map[string]bool{"root": true}, map[int64]bool{0: true}
	for _, u := range s.Cluster.Users.List() {
		names[u.Name], ids[u.Spec.UID], groupIDs[u.Spec.GID] = true, true, true
		for _, g := range u.Spec.Groups {
			groupNames[g.Name], groupIDs[g.GID] = true, true
		}
	}
	missing := func(list []string, numbers []int64, known map[string]bool, knownIDs map[int64]bool) (out []string) {
		for _, name := range list {
			if !known[name] {
				out = append(out, name)
			}
		}
		for _, n := range numbers {
			if !knownIDs[n] {
				out = append(out, strconv.FormatInt(n, 10))
			}
		}
		return out
	}
	return missing(q.Users, q.UserIDs, names, ids), missing(q.Groups, q.GroupIDs, groupNames, groupIDs)
}

// normalQOS is the QOS of jobs that name none.
const normalQOS = "normal"

// unknownQOS returns the first of names that no QOS has, and the names of all
// QOS.
func (s *Server) unknownQOS(names []string) (bad string, all []string) {
	if len(names) == 0 {
		return "", nil
	}
	all = []string{normalQOS}
	for _, q := range s.Cluster.QOS.List() {
		all = append(all, q.Name)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	for _, name := range names {
		if !slices.Contains(all, name) {
			return name, all
		}
	}
	return "", nil
}

func (s *Server) answer(list []status.Record, warning string) *status.RecordList {
	if list == nil {
		list = []status.Record{}
	}
	return &status.RecordList{
		Kind: "RecordList", APIVersion: wire.QueueGroup + "/" + wire.QueueVersion,
		Time: s.Now().Unix(), Cluster: s.cluster(), Items: list, Warning: warning,
	}
}

func (s *Server) cluster() string { return acct.ClusterName(s.Cluster.Parameters()) }

// fail responds to a request with the reason of its failure.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	switch {
	case errors.Is(err, acct.ErrDisabled):
		response.Error(w, r, http.StatusForbidden, metav1.StatusReasonForbidden, "Slurm accounting storage is disabled")
	case errors.Is(err, store.ErrNewer):
		response.Error(w, r, http.StatusConflict, metav1.StatusReasonConflict, err.Error())
	default:
		response.Error(w, r, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, err.Error())
	}
}

// decode parses a query, which may have no unknown fields.
func decode(text string, into any) error {
	if text == "" {
		return nil
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// may reports whether the caller has the right to an object of a user in an
// account. Without both the object has no owner.
func (s *Server) may(c *directory.Caller, user, account string, o authz.Object, a authz.Action) bool {
	d := s.queue.API().Directory
	return d.Refusal(d.RolesOn(c, user, account), o, a) == ""
}

// mayAll reports whether the caller has the right to the objects of all users.
func (s *Server) mayAll(c *directory.Caller, o authz.Object, a authz.Action) bool {
	return s.queue.API().Directory.Refusal(c.Roles(), o, a) == ""
}

// restrict replaces "me" by the caller's name, and restricts a caller who may not
// read the records of others to its own, unless it coordinates accounts. It
// returns false if nothing is left.
func (s *Server) restrict(q *status.RecordQuery, c *directory.Caller) bool {
	if q.Me {
		switch {
		case c.User != nil:
			q.Users = append(q.Users, c.User.Name)
		case !c.Operator:
			return false
		}
	}
	if s.mayAll(c, authz.Records, authz.Read) || len(s.coordinates(c)) > 0 {
		return true
	}
	if c.User == nil ||
		len(q.Users)+len(q.UserIDs) > 0 && !slices.Contains(q.Users, c.User.Name) &&
			!slices.Contains(q.UserIDs, c.User.Spec.UID) {
		return false
	}
	q.Users, q.UserIDs = []string{c.User.Name}, nil
	return true
}

// coordinates returns the accounts that the caller coordinates, with those below.
func (s *Server) coordinates(c *directory.Caller) map[string]bool {
	if c.User == nil {
		return nil
	}
	return s.queue.API().Directory.Coordinates(c.User.Name)
}
