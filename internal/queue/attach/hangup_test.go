package attach

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/frontproxy"
	"github.com/berth-hpc/berth/internal/wire"
)

// sentCommands are agents that record what is sent to them.
type sentCommands struct {
	Agents
	at       []time.Time
	commands []wire.Command
}

func (s *sentCommands) Send(_ int64, _ int32, c wire.Command) {
	s.at, s.commands = append(s.at, time.Now()), append(s.commands, c)
}

// TestReportHangup: an agent receives the news that a client hung up after
// hangupTimeout, if another connection of its API server outlived the client's.
func TestReportHangup(t *testing.T) {
	for _, tt := range []struct {
		name   string
		client string
		closed time.Duration // the other connection, after the client's; 0: never
		alone  bool          // there is no other connection
		want   bool
	}{
		{name: "the API server lives", client: "srun-1", want: true},
		{name: "it closes an idle connection later", client: "srun-1", closed: outliveTime + time.Second, want: true},
		{name: "it dies with the client's connection", client: "srun-1", closed: time.Millisecond},
		{name: "no other connection is known", client: "srun-1", alone: true},
		{name: "a client without a name"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var all sync.Map
				own, other := &connection{host: "192.0.2.1", all: &all}, &connection{host: "192.0.2.1", all: &all}
				if !tt.alone {
					all.Store(2, other)
				}
				agents := &sentCommands{}
				s := &Server{Options: Options{Agents: agents, Proxy: &frontproxy.Authenticator{}}}
				r := httptest.NewRequestWithContext(context.WithValue(t.Context(), connectionKey{}, own),
					http.MethodGet, "/?"+wire.AttachClient+"="+tt.client, nil)
				ended := time.Now()
				s.reportHangup(r, &v1alpha1.BatchJob{})
				if tt.closed > 0 {
					time.Sleep(tt.closed)
					other.closed.Store(time.Now().UnixNano())
				}
				time.Sleep(hangupTimeout)
				synctest.Wait()
				if got := len(agents.commands) == 1; got != tt.want {
					t.Fatalf("%v were sent", agents.commands)
				}
				if tt.want && (agents.commands[0].Client != tt.client || agents.at[0].Sub(ended) != hangupTimeout) {
					t.Errorf("%+v after %v", agents.commands[0], agents.at[0].Sub(ended))
				}
			})
		})
	}
}
