package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/berth-hpc/berth/internal/eventually"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/status"
)

// TestReadersAnswerBesideTheLeader runs a leader and two processes of the API role
// behind one address, and stops them one after the other: a submitted job is visible at
// once, a leader that hangs or has ended delays no query, and requests that write are
// forwarded to the leader.
func TestReadersAnswerBesideTheLeader(t *testing.T) {
	ctx, x := startExternal(t)
	leader := x.scheduler("leader", "--role=scheduler")
	s := newLoadBalancer(t)
	var readers []*victim
	for i := range 2 {
		at := freeAddress(t)
		s.add(at)
		readers = append(readers, x.scheduler(fmt.Sprint("reader", i), "--role=api", "--bind-address="+at, "--public-url=https://"+s.address()))
	}
	q := newQueueClient(t, x.kubeconfig)
	eventually.Succeeds(t, "the queue API responds", func() error { _, err := q.jobs(ctx); return err })

	const jobs = 10
	for n := range jobs {
		if err := submitAll(ctx, x.client, n+1, x.dir, filepath.Join(x.dir, "journal")); err != nil { // existing ones are found
			t.Fatal(err)
		}
		if ids, err := q.jobs(ctx); err != nil || len(ids) != n+1 {
			t.Errorf("after %d submissions the queue has %v (%v)", n+1, ids, err)
		}
	}
	eventually.Succeeds(t, "accounting has a record of each job", func() error {
		got := &status.RecordList{}
		if err := q.get(ctx, "/records?q={}", got); err != nil {
			return err
		}
		if len(got.Items) != jobs {
			return fmt.Errorf("%d records", len(got.Items))
		}
		return nil
	})

	if err := leader.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if ids, err := q.jobs(ctx); err != nil || len(ids) != jobs {
		t.Errorf("while the leader is stopped: %v, %v", ids, err)
	}
	if err := leader.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	eventually.Succeeds(t, "the leader changes a job", func() error { return q.cancel(ctx, "1") })

	leader.stop()
	if ids, err := q.jobs(ctx); err != nil || len(ids) != jobs {
		t.Errorf("without a leader: %v, %v", ids, err)
	}
	if err := q.cancel(ctx, "2"); err == nil || !strings.Contains(err.Error(), "no scheduler leads") {
		t.Errorf("a change without a leader: %v", err)
	}
	leader.start()
	eventually.Succeeds(t, "the next leader changes a job", func() error { return q.cancel(ctx, "2") })

	readers[0].stop()
	eventually.Succeeds(t, "the other reader responds", func() error { _, err := q.jobs(ctx); return err })
	readers[1].stop()
	readers[0].start()
	eventually.Succeeds(t, "the first reader responds again", func() error { _, err := q.jobs(ctx); return err })
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// loadBalancer replaces the Service of several replicas: it connects each client to the next
// one that listens.
type loadBalancer struct {
	net.Listener
	mu        sync.Mutex
	turn      int
	addresses []string // of the replicas
}

func newLoadBalancer(t *testing.T) *loadBalancer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &loadBalancer{Listener: l}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go s.connect(c)
		}
	}()
	return s
}

func (s *loadBalancer) address() string { return s.Addr().String() }

func (s *loadBalancer) add(address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addresses = append(s.addresses, address)
}

func (s *loadBalancer) connect(c net.Conn) {
	defer c.Close()
	s.mu.Lock()
	addresses, turn := s.addresses, s.turn
	s.turn++
	s.mu.Unlock()
	for i := range addresses {
		other, err := net.Dial("tcp", addresses[(turn+i)%len(addresses)])
		if err != nil {
			continue
		}
		defer other.Close()
		done := make(chan struct{}, 2)
		for _, pair := range [][2]net.Conn{{c, other}, {other, c}} {
			go func() {
				_, _ = io.Copy(pair[0], pair[1])
				done <- struct{}{}
			}()
		}
		<-done
		return
	}
}

// queueClient is a client of the queue API with an administrator's identity.
type queueClient struct {
	t    *testing.T
	http *http.Client
	base string
}

func newQueueClient(t *testing.T, kubeconfig string) *queueClient {
	t.Helper()
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	h, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return &queueClient{t, h, cfg.Host + wire.QueueRoot}
}

func (q *queueClient) do(r *http.Request, err error, into any) error {
	if err != nil {
		return err
	}
	resp, err := q.http.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		s := &metav1.Status{}
		if json.Unmarshal(body, s) == nil && s.Message != "" {
			return errors.New(s.Message)
		}
		return fmt.Errorf("%s: %s", resp.Status, body)
	}
	return json.Unmarshal(body, into)
}

func (q *queueClient) get(ctx context.Context, path string, into any) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, q.base+path, nil)
	return q.do(r, err, into)
}

// jobs returns the ids of all jobs in the queue, in all states.
func (q *queueClient) jobs(ctx context.Context) (ids []int64, err error) {
	var list struct {
		Items []struct {
			ID int64 `json:"id"`
		} `json:"items"`
	}
	if err := q.get(ctx, "/jobs?state=all", &list); err != nil {
		return nil, err
	}
	for _, j := range list.Items {
		ids = append(ids, j.ID)
	}
	return ids, nil
}

func (q *queueClient) cancel(ctx context.Context, id string) error {
	body := fmt.Sprintf(`{"verb":%q,"jobs":[%q]}`, status.OpCancel, id)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, q.base+"/operations", bytes.NewReader([]byte(body)))
	if err == nil {
		r.Header.Set("Content-Type", "application/json")
	}
	return q.do(r, err, &status.OperationResult{})
}
