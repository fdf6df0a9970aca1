package tui

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/tui/ui"
)

// Random keys on a screen of changing size over a changing queue cause no panic and
// no line that is too wide; and while only the queue changes, the cursor stays on
// its job. BERTH_TEST_FULL makes many more steps, from a random seed.
func TestRandomKeys(t *testing.T) {
	steps, seed := 1500, uint64(1)
	if os.Getenv("BERTH_TEST_FULL") != "" {
		steps, seed = 50_000, uint64(time.Now().UnixNano())
	}
	if s, err := strconv.ParseUint(os.Getenv("BERTH_TEST_SEED"), 10, 64); err == nil {
		seed = s
	}
	t.Logf("BERTH_TEST_SEED=%d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	c := site()
	d := start(t, c, process(nil, nil), jobs.Screen{}, 80, 24)
	d.see("101")
	var all []string
	for _, s := range ui.Sections {
		for _, e := range s.Entries {
			if e.Action != ui.Quit && e.Action != ui.Shell {
				all = append(all, e.Keys...)
			}
		}
	}
	compared := 0
	for range steps {
		switch r.IntN(12) {
		case 0:
			d.send(tea.WindowSizeMsg{Width: r.IntN(200), Height: r.IntN(60)})
		case 1:
			churn(r, c)
		case 2:
			at := tea.Mouse{X: r.IntN(100), Y: r.IntN(40), Button: tea.MouseLeft}
			d.send(
				[]tea.Msg{tea.MouseClickMsg(at), tea.MouseWheelMsg{X: at.X, Y: at.Y, Button: tea.MouseWheelDown}, tea.MouseReleaseMsg(at)}[r.IntN(3)],
			)
		case 3:
			d.send(tea.PasteMsg{Content: garbage(r)})
		case 4:
			if r.IntN(20) == 0 {
				c.Break(errors.New("down"))
				c.Break(nil)
			}
		case 5:
			m := d.m
			if r.IntN(2) == 0 { // to the queue, without a filter
				d.keys("<esc><esc><esc>1<esc>")
			}
			if m.page == ui.Page(m.queue) && m.prompt == nil && m.overlay == nil && checkCursor(t, d, r, c) {
				compared++
			}
		default:
			d.send(key(all[r.IntN(len(all))]))
			if r.IntN(3) == 0 {
				for _, ch := range garbage(r) {
					d.send(tea.KeyPressMsg{Code: ch, Text: string(ch)})
				}
				d.send(key([]string{"enter", "esc"}[r.IntN(2)]))
			}
		}
		drain(d)
		if d.quit {
			t.Fatal("the program has quit")
		}
	}
	if compared < steps/100 {
		t.Errorf("the cursor was compared %d times in %d steps", compared, steps)
	}
}

// key returns the key press with this name.
func key(name string) tea.KeyPressMsg {
	switch name {
	case "enter", "esc", "tab", "up", "down", "left", "right", "home", "end", "pgup", "pgdown", "space", "backspace":
		return keyCalled(name)
	case "delete":
		return tea.KeyPressMsg{Code: tea.KeyDelete}
	case "f1":
		return tea.KeyPressMsg{Code: tea.KeyF1}
	}
	if len(name) > 5 && name[:5] == "ctrl+" {
		return keyCalled(name)
	}
	ch := []rune(name)[0]
	return tea.KeyPressMsg{Code: ch, Text: name}
}

func drain(d *driver) {
	for {
		select {
		case msg := <-d.msgs:
			if _, quits := msg.(tea.QuitMsg); !quits {
				d.send(msg)
			}
		default:
			return
		}
	}
}

var pieces = []string{
	"user:alice",
	"gpu>=",
	"/(",
	"st:",
	"\x1b[2J",
	"101",
	":",
	"nodes",
	"\x00",
	"ü漢字",
	"999",
	"!",
	"\"",
	"sort -",
	"e101",
	"\n",
	"y",
}

func garbage(r *rand.Rand) string {
	text := ""
	for range r.IntN(3) + 1 {
		text += pieces[r.IntN(len(pieces))]
	}
	return text
}

// churn changes random jobs of the queue.
func churn(r *rand.Rand, c *cluster) {
	states := []string{"PENDING", "RUNNING", "COMPLETING", "COMPLETED", "SUSPENDED"}
	for range r.IntN(4) {
		id := int64(100 + r.IntN(60))
		if r.IntN(3) == 0 {
			c.Drop(id)
			continue
		}
		j := status.Job{
			ID:        id,
			Name:      garbage(r),
			User:      fmt.Sprint("u", r.IntN(4)),
			Partition: "main",
			State:     states[r.IntN(len(states))],
			Reason:    "Priority",
			Start:     now + int64(r.IntN(9000)) - 4000,
			TimeLimit: int32(r.IntN(400)) - 1,
			Nodes:     1,
			CPUs:      int32(r.IntN(100)),
			NodeList:  "n1",
			Submit:    now - 100,
		}
		if r.IntN(3) == 0 {
			j.ArrayJobID, j.ArrayTaskID = 100, strconv.Itoa(r.IntN(20))
		}
		c.Put(j)
	}
}

// checkCursor changes the queue around the job under the cursor, and fails unless the
// cursor is still on it when the change has arrived. It returns false if there was
// nothing to compare.
func checkCursor(t *testing.T, d *driver, r *rand.Rand, c *cluster) bool {
	t.Helper()
	id := d.m.queue.CursorKey()
	if id <= 0 || !d.m.queue.UpToDate() {
		return false
	}
	drain(d)
	if id = d.m.queue.CursorKey(); id <= 0 {
		return false
	}
	stamp := int64(r.IntN(1 << 30))
	other := id%50 + 200
	c.Put(
		status.Job{
			ID:        other,
			Name:      "other",
			User:      "u1",
			Partition: "main",
			State:     "RUNNING",
			Priority:  r.Int64N(2000),
			Submit:    stamp,
			NodeList:  "n1",
		},
	)
	c.mu.Lock()
	_, there := c.jobs[id]
	c.mu.Unlock()
	d.until("the change arrives", func() bool {
		j, ok := d.m.queue.Job(other)
		return ok && j.Submit == stamp || !d.m.queue.UpToDate()
	})
	if !there || !d.m.queue.HasLine(id) || !d.m.queue.UpToDate() {
		return false
	}
	if got := d.m.queue.CursorKey(); got != id {
		t.Fatalf("the cursor was on %d and is on %d", id, got)
	}
	return true
}
