package agent_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"flag"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/berth-hpc/berth/internal/agent"
	"github.com/berth-hpc/berth/internal/eventually"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/env"
	"github.com/berth-hpc/berth/translate/job"
)

// binDir contains the agent and srun, built for these tests.
var binDir string

func TestMain(m *testing.M) {
	raiseParallel()
	// Programs that were built before, for a user without Go.
	if binDir = os.Getenv("AGENT_TEST_BIN"); binDir != "" {
		os.Exit(m.Run())
	}
	dir, err := os.MkdirTemp("", "agent-test-")
	if err != nil {
		panic(err)
	}
	binDir = dir
	for _, pkg := range []string{"agent", "srun"} {
		args := append([]string{"build", "-tags", "berthtest", "-o", filepath.Join(dir, pkg)}, raceFlag...)
		out, err := exec.Command("go", append(args, "github.com/berth-hpc/berth/cmd/"+pkg)...).CombinedOutput()
		if err != nil {
			fmt.Fprintf(os.Stderr, "build %s: %v\n%s", pkg, err, out)
			os.Exit(1)
		}
	}
	if exec.Command("pkg-config", "--exists", "pmix").Run() == nil {
		out, err := exec.Command(
			"go",
			"build",
			"-tags",
			"pmix",
			"-o",
			dir,
			"github.com/berth-hpc/berth/cmd/pmix-server",
		).CombinedOutput()
		if err != nil {
			fmt.Fprintf(os.Stderr, "build pmix-server: %v\n%s", err, out)
			os.Exit(1)
		}
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// raiseParallel runs more tests at once than there are CPUs, unless -parallel is given:
// they spend most of their time waiting for agents.
func raiseParallel() {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if f := flag.Lookup("test.parallel"); f != nil && !given {
		f.Value.Set(strconv.Itoa(4 * runtime.GOMAXPROCS(0))) //nolint:errcheck // a number
	}
}

var jobNumber atomic.Int64

// gang is a job of several agents, each a process with its own address, and their API
// role.
type gang struct {
	t     testing.TB
	dir   string // the job's work directory
	id    int64
	nodes []*exec.Cmd
	api   *httptest.Server
	base  wire.Welcome
	key   string // PEM
	cert  string

	mu      sync.Mutex
	hello   map[int32]string // addresses
	cpus    map[int32]string // CPUs that the agents reported
	all     chan struct{}    // closed when every agent has sent Hello
	cmds    []wire.Command
	wake    chan struct{}
	reports []wire.Report
	changed chan struct{}
	logs    []*agentLog
	tmp     []string // directory of each agent's socket
	named   bool
	image   []string // variables of the container's image
	bin     string   // the agents' directory of commands; empty: binDir
	long    bool     // waits may take hours
	refuse  int      // number of requests to answer with 503 first
}

// shape describes the job of a gang.
type shape struct {
	cpus   []int32 // of each node
	script string
	args   []string
	job    func(*job.Job)
	env    []string
	with   func(*gang)
	// named gives each agent a host name and a hosts file of its own, as in a pod. It
	// needs root.
	named bool
}

// start starts a gang. At the end of the test, its processes are killed.
func start(t testing.TB, s shape) *gang {
	t.Helper()
	g := &gang{
		t: t, dir: t.TempDir(), id: 4000 + jobNumber.Add(1), hello: map[int32]string{}, cpus: map[int32]string{},
		all: make(chan struct{}), wake: make(chan struct{}), changed: make(chan struct{}),
	}
	if g.named = s.named; g.named && os.Getuid() != 0 {
		t.Skip("host names of their own need root: CI runs this test as root")
	}
	g.certificate()
	g.welcome(s)
	if s.with != nil {
		s.with(g)
	}
	g.api = httptest.NewTLSServer(g.mux())
	t.Cleanup(g.stop)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: g.api.Certificate().Raw})
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range s.cpus {
		g.agent(i, ca, token)
	}
	return g
}

func (g *gang) agent(i int, ca []byte, token string) {
	cmd := exec.Command(filepath.Join(binDir, "agent"))
	g.tmp = append(g.tmp, g.t.TempDir())
	if g.named {
		cmd = g.inNamespaces(i)
	}
	bin := binDir
	if g.bin != "" {
		bin = g.bin
	}
	cmd.Env = []string{
		wire.EnvJobID + "=" + strconv.FormatInt(g.id, 10),
		wire.EnvAttempt + "=1",
		wire.EnvNodeOffset + "=0",
		wire.EnvPodIndex + "=" + strconv.Itoa(i),
		wire.EnvPodIP + "=" + g.ip(i),
		wire.EnvAPI + "=https://127.0.0.1:1," + g.api.URL,
		wire.EnvAPICA + "=" + base64.StdEncoding.EncodeToString(ca),
		wire.EnvBinDir + "=" + bin,
		"BERTH_TEST_TOKEN=" + token,
		"TMPDIR=" + g.tmp[i],
		"KUBERNETES_SERVICE_HOST=10.0.0.1",
		"PATH=/usr/bin:/bin:/usr/sbin:/sbin",
		"BERTH_TEST_TERMINATION_LOG=" + g.termination(i),
		wire.EnvCPUBind + "=none",
	}
	cmd.Env = append(cmd.Env, g.image...)
	if err := os.WriteFile(g.termination(i), nil, 0o600); err != nil {
		g.t.Fatal(err)
	}
	log := &agentLog{}
	g.logs = append(g.logs, log)
	cmd.Stdout, cmd.Stderr = log, log
	// A gang must not outlive its test, even if that is killed.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setsid: true}
	if err := cmd.Start(); err != nil {
		g.t.Fatal(err)
	}
	g.nodes = append(g.nodes, cmd)
}

// inNamespaces returns the command of an agent with a host name and a hosts file of its
// own.
func (g *gang) inNamespaces(i int) *exec.Cmd {
	volume := filepath.Join(g.tmp[i], agent.HostsVolume)
	hosts := filepath.Join(volume, "hosts")
	if err := os.Mkdir(volume, 0o755); err != nil {
		g.t.Fatal(err)
	}
	if err := os.WriteFile(hosts, nil, 0o644); err != nil {
		g.t.Fatal(err)
	}
	return exec.Command(
		"/usr/bin/unshare",
		"--uts",
		"--mount",
		"/bin/sh",
		"-c",
		`hostname "$1" && mount --bind "$2" /etc/hosts && exec "$3"`,
		"sh",
		g.base.Hosts[i].Name,
		hosts,
		filepath.Join(binDir, "agent"),
	)
}

// ip returns the address of node i, which is unique to the job.
func (g *gang) ip(i int) string { return fmt.Sprintf("127.33.%d.%d", g.id%250, i+1) }

func (g *gang) termination(i int) string {
	return filepath.Join(g.dir, fmt.Sprintf(".termination-%d", i))
}

func (g *gang) certificate() {
	pub, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		g.t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(g.id),
		Subject:      pkix.Name{CommonName: "job"},
		NotAfter:     time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, pub, key)
	if err != nil {
		g.t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		g.t.Fatal(err)
	}
	g.cert = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	g.key = string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}))
}

func compress(t testing.TB, b []byte) []byte {
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll(b, nil)
}

func (g *gang) welcome(s shape) {
	me, err := user.Current()
	if err != nil {
		g.t.Fatal(err)
	}
	j := job.Job{Name: "test", Batch: job.Batch{WorkDir: g.dir, Args: s.args}}
	if s.job != nil {
		s.job(&j)
	}
	neutral, err := json.Marshal(&j)
	if err != nil {
		g.t.Fatal(err)
	}
	environ := append([]string{"HOME=" + g.dir, "PATH=/usr/local/bin:/usr/bin:/bin", "MARK=submitted"}, s.env...)
	g.base = wire.Welcome{
		JobID: g.id, Attempt: 1, Certificate: g.cert, Key: g.key, UID: int64(os.Getuid()), GID: int64(os.Getgid()),
		User: me.Username, Partition: "debug", ClusterName: "berth", StartTime: time.Now().Unix(), KillWait: 2,
		Job: neutral, KubeHost: "https://10.0.0.1:6443", Namespace: "user-" + me.Username,
		Script: compress(g.t, []byte(s.script)), Environment: compress(g.t, env.Join(environ)),
	}
	for i, n := range s.cpus {
		g.base.Hosts = append(g.base.Hosts, wire.Host{Name: fmt.Sprintf("n%d", i+1), CPUs: n})
	}
}

func (g *gang) mux() http.Handler {
	m := http.NewServeMux()
	m.HandleFunc("POST "+wire.PathHello, g.answer(g.serveHello))
	m.HandleFunc("POST "+wire.PathCommands, g.answer(g.serveCommands))
	m.HandleFunc("POST "+wire.PathReport, g.answer(g.serveReport))
	return m
}

func (g *gang) answer(f func(r *http.Request) any) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		g.refuse--
		refuse := g.refuse >= 0
		g.mu.Unlock()
		if refuse || r.Header.Get("Authorization") != "Bearer secret" {
			http.Error(w, "not now", http.StatusServiceUnavailable)
			return
		}
		json.NewEncoder(w).Encode(f(r)) //nolint:errcheck // the agent repeats the request
	}
}

func (g *gang) serveHello(r *http.Request) any {
	var h wire.Hello
	if json.NewDecoder(r.Body).Decode(&h) != nil {
		return nil
	}
	g.mu.Lock()
	g.hello[h.Index], g.cpus[h.Index] = h.Address, h.CPUs
	g.base.Hosts[h.Index].Address = h.Address
	if len(g.hello) == len(g.base.Hosts) {
		select {
		case <-g.all:
		default:
			close(g.all)
		}
	}
	g.mu.Unlock()
	select {
	case <-g.all:
	case <-r.Context().Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	w := g.base
	w.Index = h.Index
	if h.Index != 0 {
		w.Script, w.Environment = nil, nil
	}
	return &w
}

func (g *gang) serveCommands(r *http.Request) any {
	var q wire.CommandQuery
	if json.NewDecoder(r.Body).Decode(&q) != nil {
		return nil
	}
	for {
		g.mu.Lock()
		wake := g.wake
		var c wire.Commands
		for _, item := range g.cmds {
			if item.Seq > q.After {
				c.Items = append(c.Items, item)
			}
		}
		g.mu.Unlock()
		if len(c.Items) > 0 {
			return &c
		}
		select {
		case <-wake:
		case <-r.Context().Done():
			return &c
		case <-time.After(20 * time.Second):
			return &c
		}
	}
}

func (g *gang) serveReport(r *http.Request) any {
	var rep wire.Report
	if json.NewDecoder(r.Body).Decode(&rep) == nil {
		g.mu.Lock()
		g.reports = append(g.reports, rep)
		close(g.changed)
		g.changed = make(chan struct{})
		g.mu.Unlock()
	}
	return struct{}{}
}

// command sends a command to the batch host.
func (g *gang) command(c wire.Command) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c.Seq = int64(len(g.cmds)) + 1
	g.cmds = append(g.cmds, c)
	close(g.wake)
	g.wake = make(chan struct{})
}

// agentLog is the output of an agent, which a test may read while the agent runs.
type agentLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *agentLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String returns what was written so far.
func (l *agentLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// report waits for a report of one of the kinds.
func (g *gang) report(kinds ...string) wire.Report {
	g.t.Helper()
	end := time.After(eventually.Timeout)
	for {
		g.mu.Lock()
		changed := g.changed
		for _, r := range g.reports {
			for _, k := range kinds {
				if r.Kind == k {
					g.mu.Unlock()
					return r
				}
			}
		}
		g.mu.Unlock()
		select {
		case <-changed:
		case <-end:
			g.t.Fatalf("no report of %v; output:\n%s\nlogs:\n%s", kinds, g.output(), g.logs)
		}
	}
}

// finish waits for the end of the job and returns the last report and the output.
func (g *gang) finish() (wire.Report, string) {
	g.t.Helper()
	r := g.report(wire.ReportEnded, wire.ReportFailed)
	return r, g.output()
}

// output returns the present contents of the output file.
func (g *gang) output() string {
	b, _ := os.ReadFile(filepath.Join(g.dir, fmt.Sprintf("slurm-%d.out", g.id)))
	return string(b)
}

// await waits until the output contains a text.
func (g *gang) await(text string) {
	g.t.Helper()
	end := time.Now().Add(eventually.Timeout)
	if g.long {
		end = end.Add(time.Hour)
	}
	for !strings.Contains(g.output(), text) {
		if time.Now().After(end) {
			g.t.Fatalf("no %q in the output:\n%s", text, g.output())
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// stop terminates the agents as a kubelet does, and kills those that remain.
func (g *gang) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for _, n := range g.nodes {
		n.Process.Signal(syscall.SIGTERM) //nolint:errcheck // it may have ended
	}
	for i, n := range g.nodes {
		stop := context.AfterFunc(ctx, func() { n.Process.Kill() }) //nolint:errcheck // as above
		n.Wait()                                                    //nolint:errcheck // its exit code does not matter
		if !stop() {
			g.t.Errorf("the agent of node %d did not end on SIGTERM", i)
		}
	}
	g.api.CloseClientConnections()
	g.api.Close()
}
