package login

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/berth-hpc/berth/internal/eventually"
)

// killed: the login node dies with SIGKILL while a user's srun runs there. The cluster starts
// it again. A session with a terminal ends with its terminal, and so does its job. Without
// one, the session ends with one line, and its job goes on until srun ends or it is cancelled.
func (s *site) killed(t *testing.T) {
	onTerminal := s.killDuring(t, true)
	eventually.Holds(t, "the job of the session with a terminal ends", func() bool {
		return strings.TrimSpace(s.run("squeue -h -j "+onTerminal)) == ""
	})
	other := s.killDuring(t, false)
	if state := strings.TrimSpace(s.run("squeue -h -o %T -j " + other)); state != "RUNNING" {
		t.Errorf("the job of the session without a terminal is %q", state)
	}
	s.run("scancel " + other)
	for _, id := range []string{onTerminal, other} {
		eventually.Holds(t, "job "+id+" is accounted for", func() bool {
			state := strings.TrimSpace(s.run("sacct -n -X -P -o state -j " + id))
			return state != "" && state != "RUNNING" && !strings.Contains(state, "\n")
		})
	}
	s.nothingRuns(t)
}

// killDuring kills the login node while srun runs in a session, and returns the job of srun
// when the user can log in again.
func (s *site) killDuring(t *testing.T, terminal bool) (job string) {
	var args []string
	for _, a := range s.line { // without options that hide what ssh says
		if a != "LogLevel=ERROR" {
			args = append(args, a)
		} else {
			args = append(args, "LogLevel=INFO")
		}
	}
	if terminal {
		args = append(args, "-tt")
	}
	args = append(args, s.user+"@127.0.0.1", "srun -Q -n1 sh -c 'echo job $SLURM_JOB_ID; exec sleep 600'")
	cmd := exec.CommandContext(t.Context(), "ssh", args...)
	out, err := cmd.StdoutPipe()
	must(t, err)
	var errs strings.Builder
	cmd.Stderr = &errs
	must(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "job ") {
		t.Fatalf("srun printed %q, %v, %s", line, err, &errs)
	}
	must(t, syscall.Kill(s.loginNode(t), syscall.SIGKILL))
	err = cmd.Wait()
	if want := "Connection to 127.0.0.1 closed by remote host."; !strings.Contains(errs.String(), want) ||
		!terminal && strings.TrimSpace(errs.String()) != want || cmd.ProcessState.ExitCode() != 255 {
		t.Errorf("ssh: %v, and %q, want 255 and %q", err, errs.String(), want)
	}
	eventually.Holds(t, "a login after the login node was killed", func() bool {
		_, err := s.ssh("true")
		return err == nil
	})
	return strings.TrimSpace(strings.TrimPrefix(line, "job "))
}

// loginNode returns the process of the login node.
func (s *site) loginNode(t *testing.T) int {
	t.Helper()
	config := filepath.Join(s.dir, "s", "login", "loginnode.yaml")
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	must(t, err)
	for _, p := range paths {
		text, _ := os.ReadFile(p) // it may have ended
		if strings.HasSuffix(string(text), "--config\x00"+config+"\x00") {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(p)))
			must(t, err)
			return pid
		}
	}
	t.Fatal("the login node does not run")
	return 0
}

// clusterKilled: when the cluster dies with SIGKILL, its login node ends, whatever users the
// threads of that have acted as.
func (s *site) clusterKilled(t *testing.T) {
	login := s.loginNode(t)
	text, err := os.ReadFile("/proc/" + strconv.Itoa(login) + "/status")
	must(t, err)
	m := regexp.MustCompile(`(?m)^PPid:\s+(\d+)$`).FindSubmatch(text)
	if m == nil {
		t.Fatalf("no parent in %s", text)
	}
	cluster, err := strconv.Atoi(string(m[1]))
	must(t, err)
	must(t, syscall.Kill(cluster, syscall.SIGKILL))
	eventually.Holds(t, "the login node ends with its cluster", func() bool {
		_, err := os.Stat("/proc/" + strconv.Itoa(login))
		return os.IsNotExist(err)
	})
	// The next start removes what the killed cluster has left.
	berth := filepath.Join(repository(t), "bin", "berth")
	output(t, exec.Command(berth, "up", "--state-dir", filepath.Join(s.dir, "s")))
	output(t, exec.Command(berth, "down", "--state-dir", filepath.Join(s.dir, "s")))
}

// nothingRuns waits until no process of a session is left.
func (s *site) nothingRuns(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		return // other processes of the same user are not those of a session
	}
	isSession := regexp.MustCompile(`(?m)^.*\b(srun|sleep 600)\b.*$`)
	eventually.Holds(t, "no process of the sessions is left", func() bool {
		out, _ := exec.Command("ps", "-u", s.user, "-o", "pid=,args=").Output() // 1: there is none
		return !isSession.Match(out)
	})
}
