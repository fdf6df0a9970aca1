package tui

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/exp/teatest/v2"

	"github.com/berth-hpc/berth/internal/eventually"
	"github.com/berth-hpc/berth/internal/jobs"
)

// screenOf runs the program with its renderer on a screen of 80x24 cells.
func screenOf(t *testing.T, c *cluster, p colorprofile.Profile) *teatest.TestModel {
	t.Helper()
	m, err := New(t.Context(), process(nil, nil), c, jobs.Screen{NoMouse: true})
	if err != nil {
		t.Fatal(err)
	}
	tm := teatest.NewTestModel(
		t,
		m,
		teatest.WithInitialTermSize(80, 24),
		teatest.WithProgramOptions(tea.WithColorProfile(p)),
	)
	t.Cleanup(func() { _ = tm.Quit() })
	return tm
}

func shows(t *testing.T, tm *teatest.TestModel, text string) {
	t.Helper()
	teatest.WaitFor(
		t,
		tm.Output(),
		func(b []byte) bool { return bytes.Contains(b, []byte(text)) },
		teatest.WithDuration(eventually.Timeout),
	)
}

func TestProgram(t *testing.T) {
	c := site()
	tm := screenOf(t, c, colorprofile.ANSI)
	shows(t, tm, "sweep")
	tm.Type("/gpu>0")
	tm.Send(tea.KeyPressMsg{Code: tea.KeyEnter})
	shows(t, tm, "1 of 9 jobs")
	tm.Type("x")
	shows(t, tm, "Cancel 1 job?")
	tm.Type("1") // bob's: the number must be typed
	tm.Send(tea.KeyPressMsg{Code: tea.KeyEnter})
	shows(t, tm, "cancelled")
	tm.Type("q")
	tm.WaitFinished(t, teatest.WithFinalTimeout(eventually.Timeout))
	if ops := c.operations(); len(ops) != 1 || ops[0].Jobs[0] != "102" {
		t.Errorf("%+v", ops)
	}
}

// written records what is sent to a terminal.
type written struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (w *written) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(b)
}

func (w *written) drain() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.text.String()
	w.text.Reset()
	return s
}

// A changed row sends few bytes, an unchanged screen sends none, and no colors are
// sent to a terminal without colors.
func TestBytes(t *testing.T) {
	c := site()
	for id, j := range c.jobs { // elapsed times would change the screen
		if j.State == "RUNNING" {
			delete(c.jobs, id)
		}
	}
	m, err := New(t.Context(), process(nil, nil), c, jobs.Screen{NoMouse: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out written
	p := tea.NewProgram(
		m,
		tea.WithContext(ctx),
		tea.WithInput(nil),
		tea.WithOutput(&out),
		tea.WithWindowSize(200, 60),
		tea.WithColorProfile(colorprofile.ASCII),
		tea.WithoutSignals(),
	)
	done := make(chan struct{})
	go func() { _, _ = p.Run(); close(done) }()
	until := func(text string) (all string) {
		t.Helper()
		eventually.Holds(t, text, func() bool {
			all += out.drain()
			return strings.Contains(all, text)
		})
		return all
	}
	// rest returns what follows until nothing is written for 300 ms.
	rest := func() string {
		for last := ""; ; {
			time.Sleep(300 * time.Millisecond)
			if now := out.drain(); now == "" {
				return last
			} else { //nolint:revive // reads better
				last += now
			}
		}
	}
	if all := until("JobHeldUser"); strings.Contains(all, "\x1b[3") || strings.Contains(all, "\x1b[9") {
		t.Errorf("colours: %q", all)
	}
	rest()
	j := c.jobs[131]
	j.Reason = "JobHeldAdmin"
	c.Put(j)
	n := len(until("Admin") + rest())
	t.Logf("%d bytes for a changed row", n)
	if n > 2000 {
		t.Errorf("%d bytes for a changed row", n)
	}
	time.Sleep(1200 * time.Millisecond) // longer than a tick of the model's clock
	if idle := out.drain(); idle != "" {
		t.Errorf("idle: %q", idle)
	}
	cancel()
	<-done
}
