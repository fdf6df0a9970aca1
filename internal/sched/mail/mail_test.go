package mail

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/status"
)

var start = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func batch(change func(*v1alpha1.BatchJob)) *v1alpha1.BatchJob {
	b := &v1alpha1.BatchJob{}
	b.Spec.JobID, b.Spec.User, b.Spec.Job.Name = 42, "alice", "ring"
	b.Spec.Job.Mail = job.Mail{Types: []string{Begin, End, Fail, Requeue, Invalid, Limit, Limit50}, User: "alice@example.org"}
	at := metav1.NewMicroTime(start)
	b.Spec.SubmitTime = &at
	change(b)
	return b
}

func running(b *v1alpha1.BatchJob) {
	at := metav1.NewMicroTime(start.Add(90 * time.Second))
	b.Status.State, b.Status.StartTime, b.Status.TimeLimit = v1alpha1.StateRunning, &at, 10
}

func over(final string, code int32) func(*v1alpha1.BatchJob) {
	return func(b *v1alpha1.BatchJob) {
		running(b)
		at := metav1.NewMicroTime(start.Add(3 * time.Minute))
		b.Status.State, b.Status.Final, b.Status.EndTime = v1alpha1.StateCompleting, final, &at
		b.Status.ExitCode = &v1alpha1.ExitCode{Status: code}
	}
}

func signalled(b *v1alpha1.BatchJob) {
	over(v1alpha1.StateFailed, 0)(b)
	b.Status.ExitCode.Signal = 9
}

// TestSummaryOfArray compares the summary of arrays with the one that slurmctld 22.05.8
// passed to its mail program.
func TestSummaryOfArray(t *testing.T) {
	exit := func(code int32) func(*v1alpha1.BatchJob) {
		if code == 0 {
			return over(v1alpha1.StateCompleted, 0)
		}
		return over(v1alpha1.StateFailed, code)
	}
	cancelled := func(b *v1alpha1.BatchJob) { b.Status.State = v1alpha1.StateCancelled }
	for _, tt := range []struct {
		tasks []func(*v1alpha1.BatchJob)
		want  string
	}{
		{[]func(*v1alpha1.BatchJob){exit(0), exit(0)}, "COMPLETED, ExitCode [0-0]"},
		{[]func(*v1alpha1.BatchJob){exit(1), exit(2)}, "FAILED, ExitCode [1-2]"},
		{[]func(*v1alpha1.BatchJob){exit(0), exit(1)}, "Mixed, ExitCode [0-1]"},
		{[]func(*v1alpha1.BatchJob){exit(3), signalled}, "Mixed, MaxExitCode [3]"},
		{[]func(*v1alpha1.BatchJob){signalled, signalled}, "Mixed, MaxSignal [9]"},
		{[]func(*v1alpha1.BatchJob){exit(0), signalled}, "Mixed, MaxSignal [9]"},
		{[]func(*v1alpha1.BatchJob){exit(0), cancelled}, "Mixed, MaxSignal [9]"},
	} {
		var family []*v1alpha1.BatchJob
		for _, f := range tt.tasks {
			family = append(family, batch(f))
		}
		if got := outcomeOfTasks(family); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

// TestComponents: there is one mail about a heterogeneous job, not one for each component.
func TestComponents(t *testing.T) {
	n := New(func() *v1alpha1.MailSettings { return &v1alpha1.MailSettings{} }, nil,
		func(int64) []*v1alpha1.BatchJob { return nil }, func() time.Time { return start }, slog.New(slog.DiscardHandler))
	for offset := range int32(2) {
		of := func(change func(*v1alpha1.BatchJob)) *v1alpha1.BatchJob {
			return batch(func(b *v1alpha1.BatchJob) {
				b.Spec.Job.Het = &job.Het{Offset: offset, Size: 2}
				change(b)
			})
		}
		n.Changed(of(func(*v1alpha1.BatchJob) {}), of(running))
	}
	if len(n.queue) != 1 {
		t.Errorf("%d mails, want one", len(n.queue))
	}
}

func TestEvents(t *testing.T) {
	pending := func(*v1alpha1.BatchJob) {}
	never := func(b *v1alpha1.BatchJob) { b.Status.Reason = status.ReasonDependencyNeverSatisfied }
	again := func(b *v1alpha1.BatchJob) { b.Status.Restarts = 1 }
	task := func(b *v1alpha1.BatchJob) {
		running(b)
		b.Spec.Task, b.Spec.Origin = &v1alpha1.ArrayTask{}, &v1alpha1.Origin{JobID: 40}
	}
	requeued := func(b *v1alpha1.BatchJob) { task(b); b.Status.Restarts = 1 }
	each := func(b *v1alpha1.BatchJob) { task(b); b.Spec.Job.Mail.Types = []string{Begin, EachTask} }
	quiet := func(b *v1alpha1.BatchJob) { running(b); b.Spec.Job.Mail.Types = nil }
	for name, tt := range map[string]struct {
		old, now func(*v1alpha1.BatchJob)
		want     []string
	}{
		"begins":        {pending, running, []string{Begin}},
		"unchanged":     {running, running, nil},
		"ends":          {running, over(v1alpha1.StateCompleted, 0), []string{End}},
		"fails":         {running, over(v1alpha1.StateFailed, 3), []string{End}},
		"times out":     {running, over(v1alpha1.StateTimeout, 0), []string{Limit, End}},
		"ended":         {over(v1alpha1.StateFailed, 3), over(v1alpha1.StateFailed, 3), nil},
		"invalid":       {pending, never, []string{Invalid}},
		"requeued":      {pending, again, []string{Requeue}},
		"task":          {pending, task, nil},
		"requeued task": {task, requeued, []string{Requeue}},
		"each task":     {pending, each, []string{Begin}},
		"not wanted":    {pending, quiet, nil},
	} {
		if got := Events(batch(tt.old), batch(tt.now)); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
	if got := Events(nil, batch(running)); got != nil {
		t.Errorf("a job seen for the first time: %v", got)
	}
}

func TestCompose(t *testing.T) {
	for _, tt := range []struct {
		job   func(*v1alpha1.BatchJob)
		event string
		want  string
	}{
		{running, Begin, "Slurm Job_id=42 Name=ring Began, Queued time 00:01:30"},
		{over(v1alpha1.StateCompleted, 0), End, "Slurm Job_id=42 Name=ring Ended, Run time 00:01:30, COMPLETED, ExitCode 0"},
		{over(v1alpha1.StateFailed, 3), End, "Slurm Job_id=42 Name=ring Failed, Run time 00:01:30, FAILED, ExitCode 3"},
		{over(v1alpha1.StateCancelled, 0), End, "Slurm Job_id=42 Name=ring Ended, Run time 00:01:30, CANCELLED, ExitCode 0"},
		{signalled, Fail, "Slurm Job_id=42 Name=ring Failed, Run time 00:01:30, FAILED"},
		{over(v1alpha1.StatePending, 0), Requeue, "Slurm Job_id=42 Name=ring Requeued, Run time 00:01:30"},
		{running, Limit50, "Slurm Job_id=42 Name=ring Reached 50% of time limit, Run time 00:05:00"},
	} {
		m, ok := Compose(batch(tt.job), tt.event, "", start.Add(390*time.Second))
		if !ok || m.Subject != tt.want || m.To != "alice@example.org" {
			t.Errorf("%+v, want %q", m, tt.want)
		}
	}
	named := func(to string) func(*v1alpha1.BatchJob) {
		return func(b *v1alpha1.BatchJob) { b.Spec.Job.Mail.User = to }
	}
	for to, want := range map[string]string{"": "alice@site", "bob": "bob@site", "x@y\r\nBcc: all@y": "", "a b@y": "", "<c@y>": "c@y"} {
		m, ok := Compose(batch(named(to)), End, "@site", start)
		if ok != (want != "") || ok && m.To != want {
			t.Errorf("%q: %q %v", to, m.To, ok)
		}
	}
	m, _ := Compose(batch(func(b *v1alpha1.BatchJob) { b.Spec.Job.Name = "x\r\nBcc: all@y" }), End, "", start)
	if strings.ContainsAny(m.Subject, "\r\n") {
		t.Errorf("%q", m.Subject)
	}
}

// The time that a job was suspended is not part of its run time and does not count towards its
// time limit.
func TestSuspendedTimeIsNotRunTime(t *testing.T) {
	b := batch(running)
	b.Status.Suspended = 240
	at := b.Status.StartTime.Add(8 * time.Minute)
	if got := Reached(b, at); got != "" {
		t.Errorf("%q after 4 of 10 minutes", got)
	}
	if m, _ := Compose(b, Limit50, "", at); !strings.HasSuffix(m.Subject, "Run time 00:04:00") {
		t.Errorf("%q", m.Subject)
	}
}

// The certificate of a relay names its host, which may be an IPv6 address.
func TestRelayHost(t *testing.T) {
	for address, want := range map[string]string{"mail.example.org:25": "mail.example.org", "[::1]:25": "::1"} {
		if got := relayHost(address); got != want {
			t.Errorf("%s: %q", address, got)
		}
	}
}

func TestReached(t *testing.T) {
	b := batch(running)
	for minutes, want := range map[time.Duration]string{4: "", 5: Limit50, 9: Limit50} {
		if got := Reached(b, b.Status.StartTime.Add(minutes*time.Minute)); got != want {
			t.Errorf("after %d minutes: %q", minutes, got)
		}
	}
}

// relay starts an SMTP server that accepts one mail, and sends the lines that it received to got.
func relay(t *testing.T) (address string, got <-chan string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() }) //nolint:errcheck // over
	out := make(chan string, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close() //nolint:errcheck // over
		var text strings.Builder
		in := bufio.NewScanner(conn)
		io.WriteString(conn, "220 relay\r\n") //nolint:errcheck // the client fails then
		data := false
		for in.Scan() {
			line := in.Text()
			text.WriteString(line + "\n")
			reply := "250 ok\r\n"
			switch {
			case data && line == ".":
				data = false
			case data:
				continue
			case line == "DATA":
				reply, data = "354 go on\r\n", true
			case line == "QUIT":
				io.WriteString(conn, "221 bye\r\n") //nolint:errcheck // over
				out <- text.String()
				return
			}
			io.WriteString(conn, reply) //nolint:errcheck // the client fails then
		}
	}()
	return l.Addr().String(), out
}

// TestDelivery delivers the mail about the begin of a job by SMTP and to a web hook, as
// --mail-type and --mail-user request.
func TestDelivery(t *testing.T) {
	address, mails := relay(t)
	hooks := make(chan Message, 1)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var m Message
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
			t.Error(err)
		}
		hooks <- m
	}))
	defer hook.Close()
	settings := &v1alpha1.MailSettings{SMTP: address, Domain: "example.org"}
	n := New(func() *v1alpha1.MailSettings { return settings }, func() []*v1alpha1.BatchJob { return nil }, nil,
		func() time.Time { return start }, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n.Changed(batch(func(*v1alpha1.BatchJob) {}), batch(running))
	go n.Run(ctx)
	select {
	case text := <-mails:
		for _, want := range []string{"MAIL FROM:<slurm@example.org>", "RCPT TO:<alice@example.org>", "Subject: Slurm Job_id=42 Name=ring Began"} {
			if !strings.Contains(text, want) {
				t.Errorf("no %q in %s", want, text)
			}
		}
	case <-time.After(30 * time.Second):
		t.Fatal("no mail")
	}
	if err := Send(ctx, &v1alpha1.MailSettings{Webhook: hook.URL, SMTP: "nowhere:1"}, Message{JobID: 42, Event: End}); err != nil {
		t.Fatal(err)
	}
	if m := <-hooks; m.JobID != 42 || m.Event != End {
		t.Errorf("%+v", m)
	}
}

// TestArray follows an array of three tasks, the last of which becomes the array's own
// job, and compares the subjects of the mails.
func TestArray(t *testing.T) {
	for types, want := range map[string][]string{
		"BEGIN END": {"Slurm Array Summary Job_id=42_* (42) Name=ring Began",
			"Slurm Array Summary Job_id=42_* (42) Name=ring Ended, Mixed, ExitCode [0-3]"},
		"FAIL": {"Slurm Array Summary Job_id=42_* (42) Name=ring Failed, Mixed, ExitCode [0-3]"},
		"END ARRAY_TASKS": {"Slurm Array Task Job_id=42_1 (43) Name=ring Ended, Run time 00:01:30, COMPLETED, ExitCode 0",
			"Slurm Array Task Job_id=42_2 (44) Name=ring Failed, Run time 00:01:30, FAILED, ExitCode 3",
			"Slurm Array Task Job_id=42_3 (42) Name=ring Ended, Run time 00:01:30, COMPLETED, ExitCode 0"},
		"NONE": nil,
	} {
		jobs := map[int64]*v1alpha1.BatchJob{}
		n := New(func() *v1alpha1.MailSettings { return &v1alpha1.MailSettings{} }, nil,
			func(int64) []*v1alpha1.BatchJob { return slices.Collect(maps.Values(jobs)) }, func() time.Time { return start }, slog.New(slog.DiscardHandler))
		change := func(id int64, changes ...func(*v1alpha1.BatchJob)) {
			old := jobs[id]
			jobs[id] = batch(func(b *v1alpha1.BatchJob) {
				b.Spec.JobID, b.Spec.Job.Mail.Types = id, strings.Fields(types)
				if id == 42 {
					b.Spec.Job.Array = &job.Array{Spec: "1-3"}
				} else {
					b.Spec.Task, b.Spec.Origin = &v1alpha1.ArrayTask{Index: int32(id - 42)}, &v1alpha1.Origin{JobID: 42}
				}
				for _, f := range changes {
					f(b)
				}
			})
			n.Changed(old, jobs[id])
		}
		own := func(b *v1alpha1.BatchJob) { b.Status.Array = &v1alpha1.ArrayStatus{Own: new(int32(3))} }
		change(42)
		change(43)
		change(43, running)
		change(44)
		change(43, over(v1alpha1.StateCompleted, 0))
		change(44, running)
		change(42, own, running)
		change(44, over(v1alpha1.StateFailed, 3))
		change(42, own, over(v1alpha1.StateCompleted, 0))
		change(43, over(v1alpha1.StateCompleted, 0))
		var got []string
		for len(n.queue) > 0 {
			got = append(got, (<-n.queue).Subject)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", types, got, want)
		}
	}
}
