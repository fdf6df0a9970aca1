package pmi

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net"
	"strings"
	"sync"
	"testing"
)

// testStep is a step over several nodes, with fences between its servers.
type testStep struct {
	mu      sync.Mutex
	nodes   []*Server
	put     map[string]string
	arrived int
	waits   bool
	aborted string
}

// newStep returns a step of which task i runs on node nodeOf[i].
func newStep(nodeOf ...int32) *testStep {
	g := &testStep{put: map[string]string{}}
	var tasks [][]uint32
	for rank, n := range nodeOf {
		for len(tasks) <= int(n) {
			tasks = append(tasks, nil)
		}
		tasks[n] = append(tasks[n], uint32(rank))
	}
	for _, ranks := range tasks {
		g.nodes = append(g.nodes, New(Config{
			Name: "7.0", Size: uint32(len(nodeOf)), Tasks: ranks, TaskNode: nodeOf, Fence: g.fence,
			Abort: func(rank uint32, text string) { g.aborted = fmt.Sprintf("%d %s", rank, text) },
		}))
	}
	return g
}

func (g *testStep) fence(put map[string]string, waits bool) {
	g.mu.Lock()
	maps.Copy(g.put, put)
	g.waits = g.waits || waits
	if g.arrived++; g.arrived < len(g.nodes) || !g.waits {
		g.mu.Unlock()
		return
	}
	all := g.put
	g.put, g.arrived, g.waits = map[string]string{}, 0, false
	g.mu.Unlock()
	for _, s := range g.nodes {
		s.Release(all)
	}
}

// client is the task's end of a connection.
type client struct {
	t *testing.T
	c net.Conn
	r *bufio.Reader
}

// dial connects a task to the server of its node.
func (g *testStep) dial(t *testing.T, node int, rank uint32) *client {
	a, b := net.Pipe()
	go g.nodes[node].Serve(rank, b)
	t.Cleanup(func() { a.Close() })
	return &client{t, a, bufio.NewReader(a)}
}

// line sends a line of PMI-1, and checks the answer.
func (c *client) line(request, want string) {
	c.t.Helper()
	if _, err := io.WriteString(c.c, request+"\n"); err != nil {
		c.t.Error(err)
		return
	}
	got, err := c.r.ReadString('\n')
	if err != nil || strings.TrimSpace(got) != want {
		c.t.Errorf("%s: %q, %v; want %q", request, got, err, want)
	}
}

// initialize sends the first line of both protocols.
func (c *client) initialize(version, subversion int) {
	c.t.Helper()
	versions := fmt.Sprintf("pmi_version=%d pmi_subversion=%d", version, subversion)
	c.line("cmd=init "+versions, "cmd=response_to_init "+versions+" rc=0")
}

// message sends a message of PMI-2, and checks the answer.
func (c *client) message(request, want string) {
	c.t.Helper()
	if _, err := fmt.Fprintf(c.c, "%6d%s", len(request), request); err != nil {
		c.t.Error(err)
		return
	}
	var n int
	head := make([]byte, 6)
	if _, err := io.ReadFull(c.r, head); err != nil {
		c.t.Error(request, err)
		return
	}
	fmt.Sscan(string(head), &n) //nolint:errcheck // 0 then
	body := make([]byte, n)
	if _, err := io.ReadFull(c.r, body); err != nil || string(body) != want {
		c.t.Errorf("%s: %q, %v; want %q", request, body, err, want)
	}
}

func TestPMI1(t *testing.T) {
	g := newStep(0, 0, 1, 1)
	var wg sync.WaitGroup
	for rank := range 4 {
		c := g.dial(t, rank/2, uint32(rank))
		wg.Go(func() {
			c.initialize(1, 1)
			c.line("cmd=get_maxes", "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024")
			c.line("cmd=get_my_kvsname", "cmd=my_kvsname kvsname=7.0")
			c.line(
				"cmd=get kvsname=7.0 key=PMI_process_mapping",
				"cmd=get_result rc=0 msg=success value=(vector,(0,2,2))",
			)
			for round := range 3 {
				c.line(
					fmt.Sprintf("cmd=put kvsname=7.0 key=k%d.%d value=a b=%d", round, rank, rank),
					"cmd=put_result rc=0 msg=success",
				)
				c.line("cmd=barrier_in", "cmd=barrier_out rc=0")
				for other := range 4 {
					c.line(fmt.Sprintf("cmd=get kvsname=7.0 key=k%d.%d", round, other),
						fmt.Sprintf("cmd=get_result rc=0 msg=success value=a b=%d", other))
				}
			}
			c.line("cmd=get kvsname=7.0 key=none", "cmd=get_result rc=-1 msg=key_none_not_found value=unknown")
			c.line("mcmd=spawn\nnprocs=1\nendcmd", "cmd=spawn_result rc=-1 status=spawn_not_supported")
			c.line("cmd=finalize", "cmd=finalize_ack rc=0")
		})
	}
	wg.Wait()
}

func TestPMI2(t *testing.T) {
	g := newStep(0, 1, 0)
	var wg sync.WaitGroup
	for rank, node := range []int{0, 1, 0} {
		c := g.dial(t, node, uint32(rank))
		wg.Go(func() {
			c.initialize(2, 0)
			c.message("cmd=fullinit;pmijobid=7.0;pmirank=0;threaded=FALSE;", fmt.Sprintf(
				"cmd=fullinit-response;pmi-version=2;pmi-subversion=0;rank=%d;size=3;appnum=0;debugged=FALSE;pmiverbose=FALSE;rc=0;",
				rank,
			))
			c.message("cmd=info-getjobattr;key=PMI_process_mapping;",
				"cmd=info-getjobattr-response;found=TRUE;value=(vector,(0,2,1),(0,1,1));rc=0;")
			c.message( //nolint:misspell // as PMI-2 calls it
				fmt.Sprintf("cmd=kvs-put;thrid=5;key=k%d;value=x;;y=%d;", rank, rank),
				"cmd=kvs-put-response;thrid=5;rc=0;",
			)
			c.message("cmd=kvs-fence;", "cmd=kvs-fence-response;rc=0;")
			c.message("cmd=kvs-get;jobid=7.0;srcid=-1;key=k1;", "cmd=kvs-get-response;found=TRUE;value=x;;y=1;rc=0;")
			c.message("cmd=kvs-get;jobid=7.0;srcid=-1;key=no;", "cmd=kvs-get-response;found=FALSE;rc=0;")
			c.message("cmd=spawn;ncmds=1;", "cmd=spawn-response;rc=-1;errmsg=not supported;")
			switch rank {
			case 0: // waits for the attribute that the other task of its node puts
				c.message(
					"cmd=info-getnodeattr;key=a;wait=TRUE;",
					"cmd=info-getnodeattr-response;found=TRUE;value=1;rc=0;",
				)
			case 2:
				c.message("cmd=info-putnodeattr;key=a;value=1;", "cmd=info-putnodeattr-response;rc=0;")
			}
			c.message("cmd=finalize;", "cmd=finalize-response;rc=0;")
		})
	}
	wg.Wait()
}

// TestTaskLeaves checks that a fence does not wait for a task that has disconnected, nor
// for a node whose tasks all have.
func TestTaskLeaves(t *testing.T) {
	g := newStep(0, 0, 1)
	first, second, third := g.dial(t, 0, 0), g.dial(t, 0, 1), g.dial(t, 1, 2)
	for _, c := range []*client{first, second, third} {
		c.initialize(1, 1)
	}
	second.c.Close()
	third.c.Close()
	first.line("cmd=barrier_in", "cmd=barrier_out rc=0")
	first.line("cmd=barrier_in", "cmd=barrier_out rc=0")
	first.line("cmd=finalize", "cmd=finalize_ack rc=0")
}

func TestAbort(t *testing.T) {
	g := newStep(0)
	c := g.dial(t, 0, 0)
	c.initialize(1, 1)
	if _, err := io.WriteString(c.c, "cmd=abort exitcode=6\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.r.ReadByte(); err == nil || g.aborted != "0 exit code 6" {
		t.Errorf("%v, %q", err, g.aborted)
	}
}

// TestMalformed checks that the server closes the connection after malformed input.
func TestMalformed(t *testing.T) {
	for _, text := range []string{
		"", "x\n", "cmd=init pmi_version=2\n-00001", "cmd=init pmi_version=2\n999999x",
		"cmd=init pmi_version=1\n\n", "cmd=init pmi_version=2\n    12cmd=x", strings.Repeat("a", 3<<20),
	} {
		g := newStep(0)
		c := g.dial(t, 0, 0)
		go func() {
			io.WriteString(c.c, text) //nolint:errcheck // the other side may have closed
			c.c.Close()
		}()
		io.Copy(io.Discard, c.r) //nolint:errcheck // that it returns is what is tested
	}
}

func TestMapping(t *testing.T) {
	for want, node := range map[string][]int32{
		"(vector,(0,3,2))":                 {0, 0, 1, 1, 2, 2},
		"(vector,(0,2,1),(0,2,1))":         {0, 1, 0, 1},
		"(vector,(0,1,3),(1,1,1))":         {0, 0, 0, 1},
		"(vector,(0,1,2),(1,1,1),(0,1,1))": {0, 0, 1, 0},
	} {
		if got := Mapping(node); got != want {
			t.Errorf("%v: %s, want %s", node, got, want)
		}
	}
	long := make([]int32, 2000)
	for i := range long {
		long[i] = int32(i % 7 * 3)
	}
	if got := Mapping(long); got != "" {
		t.Errorf("too long: %d bytes", len(got))
	}
}
