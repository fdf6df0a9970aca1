package completions_test

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/berth-hpc/berth/completions"
)

// patience is the time limit of every wait for a shell.
const patience = 60 * time.Second

// Names with characters that are special in shells.
const (
	semicolon = "my job; touch HACKED $HOME *"
	quotes    = `it's "a" ` + "`touch HACKED` $(touch HACKED)"
)

// queue is the response of the fake of the queue API.
var queue = map[string]any{
	"jobs": map[string]any{"items": []map[string]any{
		{"id": 99, "name": "other", "user": "bob", "state": "RUNNING"},
		{"id": 2101, "name": semicolon, "user": "alice", "state": "PENDING"},
		{"id": 2102, "name": quotes, "user": "alice", "state": "RUNNING"},
		{"id": 2103, "name": "escape\x1b[31m\nname", "user": "alice", "state": "RUNNING"},
	}},
	"partitions": map[string]any{
		"items": []map[string]any{
			{"name": "debug", "state": "UP", "default": true, "nodes": []string{"n1", "n2"}},
			{"name": "gpu", "state": "UP"},
		},
	},
	"nodes": map[string]any{
		"items": []map[string]any{
			{"name": "n1", "state": "IDLE"},
			{"name": "n2", "state": "MIXED"},
			{"name": "n3", "state": "IDLE"},
			{
				"name":  "n4",
				"state": "DOWN",
			},
			{"name": "fat", "state": "IDLE", "features": []string{"rack1", "big"}, "gres": "gpu:a100:4(S:0),fpga:1"},
		},
	},
	"associations": map[string]any{
		"accounts": []map[string]any{{"name": "physics"}, {"name": "chemistry"}},
		"users":    []map[string]any{{"name": "alice"}, {"name": "bob"}},
		"qos":      []map[string]any{{"name": "normal"}, {"name": "urgent"}},
	},
	"reservations": map[string]any{"items": []map[string]any{{"name": "maint", "state": "INACTIVE"}}},
	"licenses":     map[string]any{"items": []map[string]any{{"name": "matlab", "total": 4}}},
	"steps": map[string]any{
		"items": []map[string]any{{"id": "2102.0", "name": "ring", "user": "alice", "state": "RUNNING"}},
	},
}

// site is a directory with berth, and an environment with a fake queue.
type site struct {
	dir      string
	env      []string
	requests *atomic.Int64
	hang     *atomic.Bool // the API does not respond
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{dir: t.TempDir(), requests: new(atomic.Int64), hang: new(atomic.Bool)}
	over := make(chan struct{})
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		if s.hang.Load() {
			<-over
		}
		if err := json.NewEncoder(w).Encode(queue[filepath.Base(r.URL.Path)]); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(over) })
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	config := fmt.Sprintf(`current-context: fake
contexts: [{name: fake, context: {cluster: fake, user: alice, namespace: user-alice}}]
clusters: [{name: fake, cluster: {server: %q, certificate-authority-data: %s}}]
users: [{name: alice, user: {token: t}}]
`, server.URL, base64.StdEncoding.EncodeToString(ca))
	s.write(t, "kubeconfig", config)
	for shell, name := range map[string]string{"bash": "berth.bash", "zsh": "_berth", "fish": "berth.fish"} {
		text, err := completions.Script(shell)
		if err != nil {
			t.Fatal(err)
		}
		s.write(t, filepath.Join("scripts", name), text)
	}
	s.write(t, filepath.Join("work", "file one.txt"), "")
	s.write(t, filepath.Join("work", "subdir", "x"), "")
	s.env = []string{
		"PATH=" + berth(t) + ":/usr/local/bin:/usr/bin:/bin",
		"HOME=" + s.dir,
		"KUBECONFIG=" + filepath.Join(s.dir, "kubeconfig"),
		"TERM=dumb",
		"LC_ALL=C.UTF-8",
		"BERTH_COMP_TIMEOUT=" + patience.String(),
		"PS1=",
		"COLUMNS=500",
		"LINES=50",
		"HISTFILE=",
	}
	return s
}

func (s *site) write(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// unharmed fails if a name was executed.
func (s *site) unharmed(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(s.dir, "work", "HACKED")); err == nil {
		t.Error("a shell ran the name of a job")
	}
}

var built string

// TestMain builds berth once.
func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "berth-completions-")
	if err == nil {
		built = dir
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// berth is the directory of the programs.
func berth(t *testing.T) string {
	t.Helper()
	path := filepath.Join(built, "berth")
	if _, err := os.Stat(path); err != nil {
		build := exec.Command("go", "build", "-o", built, "../cmd/berth", "../cmd/berth-tools")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("go build: %v\n%s", err, out)
		}
	}
	return built
}

// line is the typed text, and the resulting arguments of the command.
type line struct {
	typed string
	want  []string
}

// lines must have the same result in bash and zsh. \t is the TAB key.
var lines = []line{
	{"squeue --partit\tg\t", []string{"--partition=gpu"}},
	{"squeue -p g\t", []string{"-p", "gpu"}},
	{"squeue -pg\t", []string{"-pgpu"}},
	{"squeue --partition=debug,g\t", []string{"--partition=debug,gpu"}},
	{"squeue --states=pend\t", []string{"--states=pending"}},
	{"squeue --states=PEND\t", []string{"--states=PENDING"}},
	{"squeue --me --stat\trunn\t", []string{"--me", "--states=running"}},
	{"squeue -O jobid,timel\t", []string{"-O", "jobid,timel"}}, // several
	{"scancel --name=my\t", []string{"--name=" + semicolon}},
	{"scancel --name=it\t", []string{"--name=" + quotes}},
	{"scancel -n my\\ jo\t", []string{"-n", semicolon}},
	{"scancel -n 'my jo\t", []string{"-n", semicolon}},
	{"scancel --name=\"my jo\t", []string{"--name=" + semicolon}},
	{"scancel -n esc\t", []string{"-n", "esc"}}, // contains control characters
	{"scancel 99\t", []string{"99"}},
	{"sbatch -d afterok:2102:9\t", []string{"-d", "afterok:2102:99"}},
	{"sbatch --dependency=singl\t", []string{"--dependency=singleton"}},
	{"sbatch --mail-type=END,ARR\t", []string{"--mail-type=END,ARRAY_TASKS"}},
	{"sbatch -A ph\t", []string{"-A", "physics"}},
	{"sbatch --gres=gpu:\t", []string{"--gres=gpu:a100"}},
	{"sbatch -C 'rack1&b\t", []string{"-C", "rack1&big"}},
	{"sbatch --output=file\t", []string{"--output=file one.txt"}},
	{"sbatch --chdir=sub\tx", []string{"--chdir=subdir/x"}},
	{"sbatch fil\t", []string{"file one.txt"}},
	{"sinfo -n f\t", []string{"-n", "fat"}},
	{"scontrol upd\tJobId=99 parti\tg\t", []string{"update", "JobId=99", "partition=gpu"}},
	{"scontrol show par\tde\t", []string{"show", "partition", "debug"}},
	{"scontrol hold 21\t", []string{"hold", "2101"}}, // the only pending one
	{"scontrol update ReservationName=ma\tfla\tMAI\t", []string{"update", "ReservationName=maint", "flags=MAINT"}},
	{"sacctmgr mod\tuser bo\t set DefaultA\tchem\t",
		[]string{"modify", "user", "bob", "set", "DefaultAccount=chemistry"}},
	{"sreport clu\taccountu\t", []string{"cluster", "accountutilizationByUser"}},
	{"srun --mpi=pm\tberth", []string{"--mpi=pmi2", "berth"}},
	{"srun --jobid=99 sleep 1 : -p g\t bert\t", []string{"--jobid=99", "sleep", "1", ":", "-p", "gpu", "berth"}},
	{"sattach 2102\t", []string{"2102.0"}},
	{"squeue --no-such-option=\t", []string{"--no-such-option="}},
	{"squeue --iterate=\t", []string{"--iterate="}},
}

var result = regexp.MustCompile(`=>((?:<[^\x00]*?>)*)<=\r?\n`)

// console is an interactive shell at a terminal.
type console struct {
	t      *testing.T
	tty    *os.File
	text   chan string
	output string
}

func open(t *testing.T, s *site, program string, args ...string) *console {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Env, cmd.Dir = s.env, filepath.Join(s.dir, "work")
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 50, Cols: 500})
	if err != nil {
		t.Fatal(err)
	}
	c := &console{t: t, tty: tty, text: make(chan string, 1000)}
	go func() {
		defer close(c.text)
		buf := make([]byte, 4096)
		for {
			n, err := tty.Read(buf)
			if n > 0 {
				c.text <- string(buf[:n])
			}
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		tty.Close()
	})
	return c
}

func (c *console) send(text string) {
	c.t.Helper()
	if _, err := c.tty.WriteString(text); err != nil {
		c.t.Fatal(err)
	}
}

// until reads until the text contains the pattern.
func (c *console) until(want *regexp.Regexp) []string {
	c.t.Helper()
	deadline := time.After(patience)
	for {
		if m := want.FindStringSubmatchIndex(c.output); m != nil {
			found := want.FindStringSubmatch(c.output)
			c.output = c.output[m[1]:]
			return found
		}
		select {
		case text, ok := <-c.text:
			if !ok {
				c.t.Fatalf("the shell has ended; its output is %q", c.output)
			}
			c.output += text
		case <-deadline:
			c.t.Fatalf("no %v; the output of the shell is %q", want, c.output)
		}
	}
}

// run types a line and returns the resulting arguments of the command.
func (c *console) run(typed string) []string {
	c.t.Helper()
	c.send(typed + "\n")
	found := c.until(result)[1]
	if found == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(strings.TrimPrefix(found, "<"), ">"), "><")
}

// show is a function in each shell that prints its arguments.
const show = "show() { printf '=%s' '>'; printf '<%s>' \"$@\"; printf '%s=\\n' '<'; }\n"

func commandsAs(shell string) string {
	var b strings.Builder
	for _, name := range []string{"squeue", "sbatch", "scancel", "scontrol", "sinfo", "sacctmgr", "sreport", "srun", "sattach"} {
		if shell == "zsh" {
			fmt.Fprintf(&b, "function %s { show \"$@\" }; ", name)
		} else {
			fmt.Fprintf(&b, "%s() { show \"$@\"; }; ", name)
		}
	}
	return b.String() + "\n"
}

func bash(t *testing.T, s *site) *console {
	path, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed")
	}
	s.write(
		t,
		"bashrc",
		"PS1= PS2=; bind 'set enable-bracketed-paste off'; bind 'set bell-style none'; bind 'set completion-query-items 0'; bind 'set page-completions off'\n"+
			show+commandsAs(
			"bash",
		)+". "+filepath.Join(s.dir, "scripts/berth.bash")+"; printf 'rea%s\\n' dy\n",
	)
	c := open(t, s, path, "--noprofile", "--rcfile", filepath.Join(s.dir, "bashrc"), "-i")
	c.until(regexp.MustCompile("ready"))
	return c
}

func zsh(t *testing.T, s *site) *console {
	path, err := exec.LookPath("zsh")
	if err != nil {
		t.Skip("zsh is not installed")
	}
	s.write(
		t,
		".zshrc",
		"PROMPT= RPROMPT= PS2= PROMPT_EOL_MARK=; unsetopt prompt_cr prompt_sp beep; setopt no_nomatch; LISTMAX=10000\n"+
			"fpath=("+filepath.Join(s.dir, "scripts")+" $fpath); autoload -Uz compinit; compinit -u -D\n"+show+commandsAs("zsh")+"printf 'rea%s\\n' dy\n",
	)
	s.env = append(s.env, "ZDOTDIR="+s.dir)
	c := open(t, s, path, "-d", "-i")
	c.until(regexp.MustCompile("ready"))
	return c
}

func testLines(t *testing.T, s *site, c *console, more ...line) {
	t.Helper()
	for _, l := range slices.Concat(lines, more) {
		if got := c.run(l.typed); strings.Join(got, "\n") != strings.Join(l.want, "\n") {
			t.Errorf("%q: the command gets %q, want %q", l.typed, got, l.want)
		}
	}
	s.unharmed(t)
}

func TestBash(t *testing.T) {
	s := newSite(t)
	testLines(t, s, bash(t, s), line{"sinfo -n n[1-3,\t]", []string{"-n", "n[1-3,4]"}})
}

// TestBashShowsJobs presses TAB twice, which lists jobs with their descriptions.
func TestBashShowsJobs(t *testing.T) {
	s := newSite(t)
	c := bash(t, s)
	c.send("scancel 210\t\t")
	c.until(regexp.MustCompile(`2103  \(escape\\x1b\[31m\\x0aname RUNNING\)`))
	c.until(regexp.MustCompile(`2101  \(my job; touch HACKED \$HOME \* PENDING\)`))
	s.unharmed(t)
}

// TestNoValues checks that options are completed if the user disabled requests.
func TestNoValues(t *testing.T) {
	s := newSite(t)
	s.env = append(s.env, "SLURM_COMP_VALUE=0")
	c := bash(t, s)
	for typed, want := range map[string]string{"squeue --parti\tg\t": "--partition=g", "squeue --states=pend\t": "--states=pending"} {
		if got := c.run(typed); len(got) != 1 || got[0] != want {
			t.Errorf("%q: %q, want %s", typed, got, want)
		}
	}
	if n := s.requests.Load(); n != 0 {
		t.Errorf("%d requests", n)
	}
}

// TestFish checks fish's list of candidates, which fish quotes itself.
func TestFish(t *testing.T) {
	path, err := exec.LookPath("fish")
	if err != nil {
		t.Skip("fish is not installed")
	}
	s := newSite(t)
	tab := func(typed string) []string {
		cmd := exec.Command(
			path,
			"--no-config",
			"-c",
			"source $argv[1]; complete -C $argv[2]",
			filepath.Join(s.dir, "scripts/berth.fish"),
			typed,
		)
		cmd.Env, cmd.Dir = s.env, filepath.Join(s.dir, "work")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("fish: %v\n%s", err, out)
		}
		return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	}
	for typed, want := range map[string][]string{
		"squeue --partit":            {"--partition=\tonly jobs in these partitions"},
		"squeue --partition=debug,":  {"--partition=debug,gpu\tup, 0 nodes"},
		"squeue -p g":                {"gpu\tup, 0 nodes"},
		"squeue -pg":                 {"-pgpu\tup, 0 nodes"},
		"scancel --name=my":          {"--name=" + semicolon + "\tPENDING"},
		"scancel -n it\\'":           {quotes + "\tRUNNING"},
		"scancel -n \"my j":          {semicolon + "\tPENDING"},
		"scancel -n esc":             {""},
		"scancel 210":                {"2103\tescape\\x1b[31m\\x0aname RUNNING", "2102\t" + quotes + " RUNNING", "2101\t" + semicolon + " PENDING"},
		"sbatch -d afterok:2102:9":   {"afterok:2102:99\tother RUNNING bob"},
		"sinfo -n 'n[1-3,":           {"n[1-3,4\tdown"},
		"scontrol hold 21":           {"2101\t" + semicolon + " PENDING"},
		"sbatch --output=file":       {"--output=file one.txt"},
		"sbatch fil":                 {"file one.txt"},
		"sbatch --chdir=sub":         {"--chdir=subdir/"},
		"srun -n 2 squeue -p g":      {"gpu\tup, 0 nodes"},
		"squeue --no-such-option=":   {""},
		"berth squeue --partition=d": {"--partition=debug\tup, 2 nodes, default"},
		"berth trans":                {"translate\tPrint the Kubernetes objects of a batch script"},
		"berth import --dum":         {"--dump\toutput of sacctmgr dump"}, // of berth-tools
	} {
		got := tab(typed)
		for i := range got {
			if strings.Contains(typed, "fol") || strings.Contains(typed, "fil") {
				got[i], _, _ = strings.Cut(got[i], "\t")
			}
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%q: %q, want %q", typed, got, want)
		}
	}
	s.unharmed(t)
}

func TestZsh(t *testing.T) {
	s := newSite(t)
	testLines(t, s, zsh(t, s), line{"sinfo -n \"n[1-3,\t]\"", []string{"-n", "n[1-3,4]"}},
		// Without quotes zsh parses the bracket as a subscript.
		line{"sinfo -n n[1-3,\t]", []string{"-n", "n[1-3,4]"}},
		line{"true; A=b squeue --nodelist=n[1-3,\t]", []string{"--nodelist=n[1-3,4]"}},
		line{"arr=(x y); show $arr[2] $arr[(i)y\t]", []string{"y", "2"}}) // real subscripts still work
}
