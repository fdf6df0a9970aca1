package rest

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/translate/status"
)

// Headers of rest_auth/jwt (slurmrestd(8)).
const (
	headerUser  = "X-SLURM-USER-NAME"
	headerToken = "X-SLURM-USER-TOKEN"
)

const (
	// maxSessions bounds the memory for callers. The oldest one is forgotten first.
	maxSessions = 1000
	// sessionAge is how long the user of a token is remembered. The API server checks the
	// token of every request all the same.
	sessionAge = time.Minute
)

// session is the client of one caller, and who that is.
type session struct {
	client  *jobs.Client
	user    string // "" for an administrator of the cluster who is no user
	cluster string // its name
	created time.Time
}

// sessions keeps the sessions of recent callers. Safe for concurrent use.
type sessions struct {
	connect func(token, namespace string) *jobs.Client
	now     func() time.Time

	mu    sync.Mutex
	all   map[[sha256.Size]byte]*session
	order [][sha256.Size]byte
}

func newSessions(connect func(token, namespace string) *jobs.Client, now func() time.Time) *sessions {
	return &sessions{connect: connect, now: now, all: map[[sha256.Size]byte]*session{}}
}

// credential returns the token of a request, and the user name that the request claims.
// local: a request without a token may use the credential of this process.
func credential(h http.Header, local, jwt bool) (token, user string, ok bool) {
	user = h.Get(headerUser)
	if token = h.Get(headerToken); token == "" {
		token, _ = strings.CutPrefix(h.Get("Authorization"), "Bearer ")
	}
	if token == "" {
		return "", user, local && user == ""
	}
	return token, user, jwt
}

// find returns the session of the token's user; "" is the credential of this process. The
// errors are those of package jobs.
func (s *sessions) find(ctx context.Context, token string) (*session, error) {
	key := sha256.Sum256([]byte(token))
	s.mu.Lock()
	found := s.all[key]
	s.mu.Unlock()
	if found != nil && s.now().Sub(found.created) < sessionAge {
		return found, nil
	}
	info, err := clusterInfo(ctx, s.connect(token, ""))
	if err != nil {
		return nil, err
	}
	made := &session{
		client:  s.connect(token, info.Namespace),
		user:    info.User,
		cluster: clusterName(info),
		created: s.now(),
	}
	s.keep(key, made)
	return made, nil
}

func (s *sessions) keep(key [sha256.Size]byte, made *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all[key] == nil {
		s.order = append(s.order, key)
	}
	s.all[key] = made
	for len(s.all) > maxSessions {
		delete(s.all, s.order[0])
		s.order = s.order[1:]
	}
}

func clusterInfo(ctx context.Context, c *jobs.Client) (*status.ClusterInfo, error) {
	members, err := c.ClusterInfo(ctx)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(members)
	if err != nil {
		return nil, err
	}
	info := new(status.ClusterInfo)
	return info, json.Unmarshal(data, info)
}

func clusterName(info *status.ClusterInfo) string {
	var spec struct {
		ClusterName string `json:"clusterName"`
	}
	if json.Unmarshal(info.Spec, &spec) != nil || spec.ClusterName == "" {
		return "berth"
	}
	return spec.ClusterName
}
