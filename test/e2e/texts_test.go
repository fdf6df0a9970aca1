package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/berth-hpc/berth/internal/eventually"
	"github.com/berth-hpc/berth/test/tmux"
)

// hostileTexts are what an attacker, or an accident, writes where a name, a comment or a path
// belongs.
var hostileTexts = map[string]string{
	"clears the screen":   "\x1b[2J\x1b[H\x1b[31mred",
	"sets the title":      "\x1b]0;owned\x07",
	"one-byte controls":   "\u009b31m\u009d0;owned\u009c\x85",
	"more lines":          "a\nJobId=99 JobState=COMPLETED\n99 debug fake root R 0:00 1 n1",
	"overwrites the line": "a\rroot\b\b\b\x7f",
	"a tab":               "a\tb",
	"written backwards":   "\u202egpj.exe\u2066x\u2069",
	"line separators":     "a\u2028b\u2029c",
	"not UTF-8":           "a\xff\xfe\xc3(b\xe2\x82",
	"many characters":     strings.Repeat("é日🙂", 1200), // about 10 KB
	"many marks":          "e" + strings.Repeat("\u0301", 3000),
	"a shell's":           "`id` $(id); rm -rf '\"\\ %j %s %n %d",
	"other keys":          "x JobId=99 UserId=root(0) Comment=y,z|w",
	"a path":              "../../../../etc/passwd",
	"markup":              "<b>&amp;{{.}}</b>",
	"nothing":             "",
}

// hostileCommands write a text T where users may; some are refused, with a message. Those that
// print the caller's own words, as squeue --format does, are not among them.
var hostileCommands = [][]string{
	{"sbatch", "-H", "-J", "T", "--comment", "T", "--wckey", "T", "--mail-user", "T", "-o", "T", "--wrap", "true # T"},
	{"sbatch", "-H", "--comment=T", "--wrap", "true"}, {"sbatch", "-H", "-D", "T", "--wrap", "true"},
	{"sbatch", "-p", "T", "--wrap", "true"}, {"sbatch", "-C", "T", "--wrap", "true"}, {"sbatch", "-d", "T", "--wrap", "true"},
	{"sbatch", "-w", "T", "--wrap", "true"}, {"sbatch", "-A", "T", "-q", "T", "--wrap", "true"}, {"sbatch", "-t", "T", "--wrap", "true"},
	{"sbatch", "--gres", "T", "--wrap", "true"}, {"sbatch", "-L", "T", "--wrap", "true"}, {"sbatch", "--T"}, {"sbatch", "T"},
	{"sbatch", "--reservation", "T", "--wrap", "true"}, {"sbatch", "--export", "T", "--begin", "T", "--wrap", "true"},
	{"srun", "-J", "T", "T"}, {"salloc", "-n1", "-J", "T", "T"}, {"scancel", "T"}, {"scancel", "-n", "T"}, {"scancel", "-u", "T"},
	{"squeue", "-n", "T"}, {"squeue", "-u", "T"}, {"squeue", "-p", "T"}, {"squeue", "-O", "T"}, {"squeue", "-t", "T"},
	{"sinfo", "-p", "T"}, {"sinfo", "-n", "T"}, {"sacct", "-j", "T"}, {"sacct", "--name", "T"}, {"sacct", "-o", "T"},
	{"sacct", "-S", "T"}, {"scontrol", "T"}, {"scontrol", "show", "T"}, {"scontrol", "show", "job", "T"}, {"scontrol", "show", "node", "T"},
	{"scontrol", "update", "job", "1", "Comment=T"}, {"scontrol", "update", "job", "1", "JobName=T", "AdminComment=T"},
	{"scontrol", "update", "job", "1", "T=1"}, {"scontrol", "update", "T"}, {"scontrol", "update", "NodeName=n1", "Comment=T", "Reason=T"},
	{"scontrol", "create", "reservation", "ReservationName=T", "Users=" + currentUser(), "Nodes=n1", "StartTime=now+1day", "Duration=1"},
	{"scontrol", "hold", "T"}, {"sacctmgr", "-i", "add", "account", "T", "Description=T", "Organization=T"},
	{"sacctmgr", "-i", "add", "qos", "T"}, {"sacctmgr", "show", "T"}, {"sacctmgr", "show", "user", "T", "format=T"},
	{"sreport", "T", "T"}, {"sprio", "-j", "T"}, {"sshare", "-u", "T"}, {"sstat", "-j", "T"}, {"strigger", "--set", "-p", "T", "-n", "T", "--down"},
	{"scrontab", "T"}, {"sattach", "T"}, {"seff", "T"}, {"sbcast", "T", "T"}, {"berth", "T"}, {"berth", "events", "T"},
}

// listings show what the commands have written, with every column that there is.
var listings = [][]string{
	{"squeue"}, {"squeue", "-l"}, {"squeue", "-s"}, {"squeue", "-o", "%all"}, {"squeue", "-o", "%j|%k|%Z|%o|%w|%i"},
	{"squeue", "-O", "Name:50,Comment:50,WorkDir:80,Command:30,Wckey:20,STDOUT:60,STDERR:60,AdminComment:20"},
	{"sinfo"}, {"sinfo", "-R"}, {"sinfo", "-N", "-l"}, {"sinfo", "-o", "%all"}, {"sinfo", "-O", "Comment:40,Reason:40"},
	{"sacct", "-P", "-o", "ALL"}, {"sacct", "-l"}, {"sacct", "-o", "JobName%60,Comment%60,WorkDir%60,WCKey,SubmitLine%80"},
	{"scontrol", "show", "job"}, {"scontrol", "-d", "show", "job"}, {"scontrol", "-o", "show", "job"}, {"scontrol", "show", "node"},
	{"scontrol", "show", "reservation"}, {"scontrol", "show", "partition"}, {"scontrol", "write", "batch_script", "1", "-"},
	{"sprio", "-l"}, {"sshare", "-a", "-l"}, {"sacctmgr", "-P", "show", "account"}, {"sacctmgr", "show", "qos"},
	{"sacctmgr", "-P", "show", "assoc"}, {"sacctmgr", "show", "wckey"}, {"sreport", "cluster", "AccountUtilizationByUser"},
	{"sreport", "job", "SizesByWckey"}, {"strigger", "--get"}, {"sdiag"}, {"berth", "doctor"},
}

// TestHostileTexts passes texts that could control a terminal, break a line or forge a record
// wherever users may write text, and checks the output of all commands.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	c := start(t, "--nodes", "2", "--cpus", "2")
	dir := t.TempDir()
	run := func(args ...string) (stdout, all []byte) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, filepath.Join(c.bin, args[0]), args[1:]...)
		cmd.Env, cmd.Dir = c.environ(dir), dir
		var out, err bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &err
		_ = cmd.Run() // most are refused
		if ctx.Err() != nil {
			t.Errorf("%.200q did not end within a minute", args)
		}
		return out.Bytes(), append(out.Bytes(), err.Bytes()...)
	}
	for name, text := range hostileTexts {
		for _, command := range hostileCommands {
			args := make([]string, len(command))
			for i, a := range command {
				args[i] = strings.ReplaceAll(a, "T", text)
			}
			if _, out := run(args...); unsafe(out) != "" {
				t.Errorf("%s: %q prints %s", name, command, unsafe(out))
			}
		}
	}
	for _, command := range listings {
		if _, out := run(command...); unsafe(out) != "" && !slices.Contains(command, "batch_script") { // a script is printed as it is
			t.Errorf("%q prints %s", command, unsafe(out))
		}
	}
	shown, _ := run("scontrol", "-o", "show", "job")
	listed, _ := run("squeue", "-h", "-r", "-t", "all", "-o", "%i")
	if a, b := bytes.Count(shown, []byte("\n")), bytes.Count(listed, []byte("\n")); a != b || a < len(hostileTexts) {
		t.Errorf("scontrol shows %d lines for %d jobs", a, b)
	}
	for _, command := range [][]string{{"squeue", "--json"}, {"sacct", "--json"}, {"sinfo", "--json"}} {
		out, _ := run(command...)
		if !json.Valid(out) || unsafe(out) != "" {
			t.Errorf("%q: valid %t, %s", command, json.Valid(out), unsafe(out))
		}
	}
	t.Run("terminal", func(t *testing.T) { hostileScreens(t, c, dir) })
}

// hostileScreens opens the jobs in the terminal UI.
func hostileScreens(t *testing.T, c *cluster, dir string) {
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("tmux is not installed: apt install tmux")
	}
	x := tmux.Open(t, c.environ(dir), dir, 100, 30, eventually.Timeout, "squeue --tui")
	x.See("(JobHeldUser)", "jobs")
	for range 12 { // the details of one job after the other
		x.Keys("Enter")
		x.See("Esc back")
		x.Keys("Escape")
		x.See("jobs", "!Esc back")
		x.Keys("Down")
	}
	x.Keys("C-l")
	x.See("(JobHeldUser)", "jobs", "!owned")
}

// unsafe returns the first character of out that could control a terminal or break a line,
// with what is around it, or "".
func unsafe(out []byte) string {
	for i := 0; i < len(out); {
		r, size := utf8.DecodeRune(out[i:])
		if r == utf8.RuneError && size < 2 || r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) ||
			r == '\u2028' || r == '\u2029' {
			text, _ := json.Marshal(string(out[max(0, i-60):min(len(out), i+20)]))
			return string(text)
		}
		i += size
	}
	return ""
}
