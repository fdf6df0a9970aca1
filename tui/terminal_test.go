package tui

import (
	"image/color"
	"os"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/creack/pty"

	"github.com/berth-hpc/berth/internal/eventually"
	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/translate/format"
)

// A hangup of the terminal is noticed without a signal.
func TestHangup(t *testing.T) {
	master, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	gone := make(chan struct{})
	watchHangup(tty, func() { close(gone) })
	if _, err := master.WriteString("x"); err != nil { // a key is not a hangup
		t.Fatal(err)
	}
	select {
	case <-gone:
		t.Fatal("a key counts as a hangup")
	case <-time.After(100 * time.Millisecond):
	}
	master.Close()
	select {
	case <-gone:
	case <-time.After(eventually.Timeout):
		t.Error("the hangup was not noticed")
	}
	r, w, err := os.Pipe() // not a terminal: there is nothing to watch
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	watchHangup(strings.NewReader(""), func() { t.Error("a hangup of no terminal") })
}

// The theme follows the background that the terminal reports, unless the user has
// chosen one.
func TestBackground(t *testing.T) {
	theme := func(env map[string]string, s jobs.Screen, msgs ...tea.Msg) string {
		d := start(t, site(), process(env, nil), s, 80, 24)
		for _, m := range msgs {
			d.send(m)
		}
		return d.m.appearance.Name
	}
	white, black := tea.BackgroundColorMsg{Color: color.White}, tea.BackgroundColorMsg{Color: color.Black}
	for _, c := range []struct{ name, got, want string }{
		{"the background is unknown", theme(nil, jobs.Screen{}), "dark"},
		{"the terminal reports white", theme(nil, jobs.Screen{}, white), "light"},
		{"the terminal reports black", theme(nil, jobs.Screen{}, black), "dark"},
		{"COLORFGBG", theme(map[string]string{"COLORFGBG": "0;15"}, jobs.Screen{}), "light"},
		{"COLORFGBG of rxvt", theme(map[string]string{"COLORFGBG": "0;default;15"}, jobs.Screen{}), "light"},
		{"COLORFGBG, dark", theme(map[string]string{"COLORFGBG": "15;0"}, jobs.Screen{}), "dark"},
		{"COLORFGBG, broken", theme(map[string]string{"COLORFGBG": ";"}, jobs.Screen{}), "dark"},
		{"the terminal contradicts COLORFGBG", theme(map[string]string{"COLORFGBG": "0;15"}, jobs.Screen{}, black), "dark"},
		{"--theme", theme(map[string]string{"COLORFGBG": "0;15"}, jobs.Screen{Theme: "mono"}), "mono"},
	} {
		if c.got != c.want {
			t.Errorf("%s: %s, want %s", c.name, c.got, c.want)
		}
	}
}

// Columns have the width and alignment that squeue -o gives them.
func TestWidthsFromTheCommandLine(t *testing.T) {
	l, bad := format.ParseLetters(format.JobColumns(), "%i|%.10j|%6u|%t")
	if len(bad) > 0 {
		t.Fatal(bad)
	}
	d := start(t, site(), process(nil, nil), jobs.Screen{Layout: l}, 60, 24)
	d.see("101")
	d.keys("/train<enter>")
	d.see("1 of 9")
	row := strings.Split(d.screen(), "\n")[2]
	if want := " train-lar… bob    R"; !strings.HasSuffix(row, want) {
		t.Errorf("%q does not end with %q", row, want)
	}
	d.keys(":format %i %.30j<enter>")
	d.see("train-large-language-model")
}
