package claimsource

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/usersource"
)

// Store keeps what is known of users across restarts.
type Store interface {
	Load(ctx context.Context) ([]byte, error) // nil: nothing was saved yet
	Save(ctx context.Context, data []byte) error
}

// Options are the dependencies of a Source.
type Options struct {
	Store Store
	// Relevant are the groups that the policy mentions; others are forgotten, as tokens may have
	// hundreds.
	Relevant []string
	// Allowed are the groups of which users are members; empty: everybody is a user.
	Allowed []string
	// UIDOf returns the uid of the User of a name that this source has made, or 0. Taken reports
	// whether a User has the uid.
	UIDOf func(name string) int64
	Taken func(uid int64) bool
	Now   func() time.Time
}

// Limits of what is kept, so that it fits into one ConfigMap.
const (
	maxUsers  = 5000
	maxGroups = 64
	maxText   = 255
	maxKeys   = 8
	// refresh is the age at which a contact without news is kept.
	refresh = time.Hour
)

// user is what is known of a user.
type user struct {
	UID    int64     `json:"uid"`
	GID    int64     `json:"gid"`
	Groups []string  `json:"groups,omitempty"`
	Home   string    `json:"home,omitempty"`
	Shell  string    `json:"shell,omitempty"`
	Keys   []string  `json:"keys,omitempty"`
	Seen   time.Time `json:"seen"` // when a token was presented
}

// same reports whether two contacts say the same.
func (u user) same(v user) bool {
	return u.UID == v.UID && u.GID == v.GID && u.Home == v.Home && u.Shell == v.Shell &&
		slices.Equal(u.Groups, v.Groups) && slices.Equal(u.Keys, v.Keys)
}

// Source is a usersource.Source and a usersource.Versioned.
type Source struct {
	cfg Config
	o   Options

	mu      sync.Mutex
	pending map[string]user // contacts that have not been listed yet, with ids of 0 if not claimed
	last    map[string]user // the last contact of each user in this process
	changes int
	refused bool // a contact was forgotten because there were too many

	users map[string]user // by List alone
}

// New returns a source. c is complete.
func New(c Config, o Options) *Source {
	return &Source{cfg: c, o: o, pending: map[string]user{}, last: map[string]user{}}
}

// Contact notes that the API server has verified a token of identity with these groups; extra
// returns the values of an extra attribute. It does no input or output, and may be called with
// every request.
func (s *Source) Contact(identity string, groups []string, extra func(key string) []string) {
	name, ok := s.cfg.name(identity)
	if !ok || !usersource.ValidName(name) {
		return
	}
	memberOf := s.groups(groups)
	if len(s.o.Allowed) > 0 && !slices.ContainsFunc(memberOf, func(g string) bool {
		return slices.Contains(s.o.Allowed, g)
	}) {
		return
	}
	now := s.o.Now()
	u := user{Groups: memberOf, Seen: now.UTC().Truncate(time.Second)}
	u.UID, u.GID = number(extra(s.cfg.UID)), number(extra(s.cfg.GID))
	u.Home, u.Shell = text(extra(s.cfg.Home)), text(extra(s.cfg.Shell))
	u.Keys, _ = usersource.Keys(extra(s.cfg.Keys))
	u.Keys = u.Keys[:min(len(u.Keys), maxKeys)]
	s.mu.Lock()
	defer s.mu.Unlock()
	before, known := s.last[name]
	if known && before.same(u) && now.Sub(before.Seen) < min(refresh, s.cfg.ValidFor.Duration/2) {
		return
	}
	if !known && len(s.last) >= maxUsers {
		s.refused = true
		return
	}
	s.last[name], s.pending[name] = u, u
	s.changes++
}

// groups returns the names of the groups that matter, sorted.
func (s *Source) groups(groups []string) []string {
	var out []string
	for _, g := range groups {
		name, ok := strings.CutPrefix(g, s.cfg.GroupPrefix)
		_, hasGID := s.cfg.GIDs[name]
		if ok && (hasGID || slices.Contains(s.o.Relevant, name)) && len(out) < maxGroups {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// number returns the only value as a number: 0 if there is none or it is empty, and -1, which no
// policy accepts, if it is no id.
func number(values []string) int64 {
	if len(values) == 0 || len(values) == 1 && values[0] == "" {
		return 0
	}
	n, err := strconv.ParseInt(values[0], 10, 64)
	if err != nil || n <= 0 || len(values) > 1 {
		return -1
	}
	return n
}

func text(values []string) string {
	if len(values) != 1 || len(values[0]) > maxText {
		return ""
	}
	return values[0]
}

// Version implements usersource.Versioned.
func (s *Source) Version() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strconv.Itoa(s.changes)
}

// List returns everybody who has ever presented a token; who has not for too long is disabled. It
// must not be called by several goroutines at a time.
func (s *Source) List(ctx context.Context) (*usersource.Listing, error) {
	if err := s.load(ctx); err != nil {
		return nil, err
	}
	out := &usersource.Listing{Groups: len(s.cfg.GIDs) + len(s.o.Relevant) + 1}
	s.mu.Lock()
	pending, refused := s.pending, s.refused
	s.pending = map[string]user{}
	s.mu.Unlock()
	if refused {
		out.Problem("more than %d users have presented tokens; further ones are ignored", maxUsers)
	}
	if err := s.merge(ctx, pending, out); err != nil {
		s.mu.Lock()
		maps.Copy(pending, s.pending) // the newer ones count
		s.pending = pending
		s.mu.Unlock()
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(s.users)) {
		out.Entries = append(out.Entries, s.entry(name, s.users[name]))
	}
	return out, nil
}

// load reads what was saved by an earlier process.
func (s *Source) load(ctx context.Context) error {
	if s.users != nil {
		return nil
	}
	data, err := s.o.Store.Load(ctx)
	if err != nil {
		return err
	}
	users := map[string]user{}
	if data != nil {
		if err := json.Unmarshal(data, &users); err != nil {
			return fmt.Errorf("the stored users cannot be read: %w", err)
		}
	}
	s.users = users
	return nil
}

// merge adds contacts to the users, with uids, and saves them.
func (s *Source) merge(ctx context.Context, pending map[string]user, out *usersource.Listing) error {
	if len(pending) == 0 {
		return nil
	}
	users := maps.Clone(s.users)
	for _, name := range slices.Sorted(maps.Keys(pending)) {
		u := pending[name]
		if u.UID == 0 {
			if u.UID = s.allocate(users, name); u.UID == 0 {
				out.Problem("user %q is refused: its token names no uid (%s), and none is left to allocate", name, s.cfg.UID)
				continue
			}
		}
		switch before, known := users[name]; {
		case u.GID != 0:
		case s.cfg.DefaultGID != 0:
			u.GID = s.cfg.DefaultGID
		case known && before.UID == u.UID:
			u.GID = before.GID
		default:
			u.GID = u.UID
		}
		users[name] = u
	}
	data, err := json.Marshal(users)
	if err != nil {
		return err
	}
	if err := s.o.Store.Save(ctx, data); err != nil {
		return err
	}
	s.users = users
	return nil
}

// allocate returns the uid of a user whose token names none: the one that the user has, else the
// first one above all that were ever allocated; 0 if there is none.
func (s *Source) allocate(users map[string]user, name string) int64 {
	if u, known := users[name]; known && u.UID > 0 {
		return u.UID
	}
	if uid := s.o.UIDOf(name); uid != 0 {
		return uid
	}
	if s.cfg.Allocate.Max == 0 {
		return 0
	}
	next := s.cfg.Allocate.Min
	for _, u := range users {
		if u.UID >= next && u.UID <= s.cfg.Allocate.Max {
			next = u.UID + 1
		}
	}
	for ; next <= s.cfg.Allocate.Max; next++ {
		if !s.o.Taken(next) {
			return next
		}
	}
	return 0
}

func (s *Source) entry(name string, u user) usersource.Entry {
	e := usersource.Entry{
		Name: name, UID: u.UID, GID: u.GID, MemberOf: u.Groups, Home: u.Home, Shell: u.Shell, SSHKeys: u.Keys,
		Disabled: s.o.Now().Sub(u.Seen) > s.cfg.ValidFor.Duration,
	}
	for _, g := range u.Groups {
		if gid, ok := s.cfg.GIDs[g]; ok {
			e.Groups = append(e.Groups, v1alpha1.Group{Name: g, GID: gid})
		}
	}
	return e
}
