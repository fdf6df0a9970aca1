// Package output is the page of a job's output: its file, followed while the
// page is on the screen. Where the file is on no volume of this machine it says
// so.
package output

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/tui/data"
	"github.com/berth-hpc/berth/tui/ui"
)

// pause is the time between two looks at a file; shared file systems tell of
// no changes by themselves.
const pause = time.Second

// Page shows one file of a job.
type Page struct {
	env    *data.Env
	id     string
	errors bool // standard error
	path   string
	tail   *tail
	ring   ring
	err    error
	hidden bool
	busy   bool // a look is under way

	top, height, width int
	follow             bool
	paused             bool
	wrap, stamps       bool
	across             int
	search             *regexp.Regexp
	found              int // line of the last match
}

// New makes the page of the job's output; an e before the id means its
// standard error.
func New(env *data.Env, id string) *Page {
	p := &Page{env: env, follow: true, found: -1, hidden: true}
	p.id, p.errors = strings.CutPrefix(id, "e")
	return p
}

type located struct {
	page *Page
	path string
	err  error
}

type read struct {
	tail  *tail
	piece piece
}

type again struct{ page *Page }

// Update takes a message in.
func (p *Page) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case ui.Shown:
		p.hidden = false
		if p.path == "" {
			return p.locate()
		}
		return p.look()
	case ui.Hidden:
		p.hidden = true
	case located:
		if msg.page == p {
			return p.located(msg)
		}
	case again:
		if msg.page == p {
			return p.look()
		}
	case read:
		if msg.tail == p.tail {
			p.busy = false
			return p.take(msg.piece)
		}
	case ui.Click:
		p.scroll(msg.Wheel)
	case ui.Press:
		return p.press(msg)
	}
	return nil
}

// locate asks where the job's output is.
func (p *Page) locate() tea.Cmd {
	env, id, wantErrors := p.env, p.id, p.errors
	return func() tea.Msg {
		ctx, cancel := env.Timeout()
		defer cancel()
		list, err := env.Cluster.Jobs(ctx, jobs.Filter{IDs: []string{id}, States: jobs.AllStates})
		if err != nil {
			return located{p, "", err}
		}
		if len(list.Items) > 0 {
			file, err := fileOf(&list.Items[0], wantErrors)
			return located{p, file, err}
		}
		records, err := env.Cluster.Records(ctx, &status.RecordQuery{Jobs: []string{id}, NoSteps: true})
		if err == nil && len(records.Items) == 0 {
			err = fmt.Errorf("no job %s is known", id)
		}
		if err != nil {
			return located{p, "", err}
		}
		// Accounting has the folder, not the name: sbatch's usual one is tried.
		r := &records.Items[len(records.Items)-1]
		return located{p, path.Join(r.WorkDir, "slurm-"+id+".out"), nil}
	}
}

// fileOf is the file of a job's output.
func fileOf(j *status.Job, wantErrors bool) (string, error) {
	if j.NoBatch {
		return "", errors.New("it has no batch script, so its output went to the terminal of srun or salloc")
	}
	file := j.StdOut
	if wantErrors && j.StdErr != "" {
		file = j.StdErr
	}
	if file == "" {
		file = "slurm-" + format.JobID(j) + ".out"
	}
	if !path.IsAbs(file) {
		file = path.Join(j.WorkDir, file)
	}
	return file, nil
}

func (p *Page) located(l located) tea.Cmd {
	if p.err = l.err; l.err != nil {
		return nil
	}
	p.path = l.path
	p.tail = &tail{open: p.env.OpenFile, path: l.path}
	return p.look()
}

// look has the next piece read, unless nobody looks or one is being read.
func (p *Page) look() tea.Cmd {
	if p.hidden || p.busy || p.paused || p.tail == nil {
		return nil
	}
	p.busy = true
	t := p.tail
	return func() tea.Msg { return read{t, t.look()} }
}

func (p *Page) take(got piece) tea.Cmd {
	if got.fresh {
		p.ring.reset()
		p.ring.cut = got.late
	}
	if p.err = got.err; got.err == nil && len(got.text) > 0 {
		at := p.env.Now()
		if got.first || got.more && len(p.ring.times) > 0 && p.ring.times[len(p.ring.times)-1].IsZero() {
			at = time.Time{}
		}
		p.ring.add(got.text, at)
	}
	if got.more {
		return p.look()
	}
	if p.hidden {
		if p.tail != nil {
			p.tail.shut() // nobody looks; it is opened again
		}
		return nil
	}
	return tea.Tick(pause, func(time.Time) tea.Msg { return again{p} })
}

// lines is how many lines there are, the unfinished one included.
func (p *Page) lines() int {
	n := len(p.ring.lines)
	if len(p.ring.part) > 0 {
		n++
	}
	return n
}

func (p *Page) line(i int) (string, time.Time) {
	if i < len(p.ring.lines) {
		return p.ring.lines[i], p.ring.times[i]
	}
	return string(p.ring.part), time.Time{}
}

func (p *Page) press(k ui.Press) tea.Cmd {
	page := max(1, p.height-1)
	switch k.Action {
	case ui.Up:
		p.scroll(-1)
	case ui.Down:
		p.scroll(1)
	case ui.PageUp:
		p.scroll(-page)
	case ui.PageDown:
		p.scroll(page)
	case ui.HalfUp:
		p.scroll(-max(1, page/2))
	case ui.HalfDown:
		p.scroll(max(1, page/2))
	case ui.Top:
		p.top, p.follow = 0, false
	case ui.Bottom:
		p.follow = true
	case ui.Left:
		p.across = max(0, p.across-8)
	case ui.Right:
		p.across += 8
	case ui.Group:
		p.wrap = !p.wrap
	case ui.Stamps:
		p.stamps = !p.stamps
	case ui.Pause:
		if p.paused = !p.paused; !p.paused {
			return p.look()
		}
	case ui.Errors, ui.Output:
		return p.other(k.Action == ui.Errors)
	case ui.Filter:
		return p.env.Send(ui.Ask{Label: "search: ", History: "search", Done: p.find})
	case ui.Next:
		return p.jump(1)
	case ui.Prev:
		return p.jump(-1)
	case ui.Clear:
		p.search = nil
	case ui.Copy:
		return p.env.Send(ui.Clip{Text: p.path, What: p.path})
	case ui.ShowLine:
		return p.env.Send(ui.Clip{Text: p.Line(), What: p.Line()})
	}
	return nil
}

// other shows the other stream.
func (p *Page) other(wantErrors bool) tea.Cmd {
	if p.errors == wantErrors {
		return nil
	}
	if p.tail != nil && !p.busy { // else it is closed when it is collected
		p.tail.shut()
	}
	p.errors, p.path, p.tail, p.err, p.follow, p.busy = wantErrors, "", nil, nil, true, false
	p.ring.reset()
	return p.locate()
}

// scroll moves the window; at the end it follows again.
func (p *Page) scroll(n int) {
	last := max(0, p.lines()-p.height)
	if p.follow {
		p.top = last
	}
	p.top = max(0, min(last, p.top+n))
	p.follow = p.top >= last && n >= 0
}

// find looks for text from the end on; one that is no regular expression is
// looked for as it is.
func (p *Page) find(text string) tea.Cmd {
	if text == "" {
		p.search = nil
		return nil
	}
	re, err := regexp.Compile("(?i)" + text)
	if err != nil {
		re = regexp.MustCompile("(?i)" + regexp.QuoteMeta(text))
	}
	p.search, p.found = re, p.lines()
	return p.jump(-1)
}

// jump goes to the next match in a direction, round the ends.
func (p *Page) jump(n int) tea.Cmd {
	if p.search == nil {
		return p.env.Say("Search for something first.")
	}
	total := p.lines()
	for step := 1; step <= total; step++ {
		i := ((p.found+n*step)%total + total) % total
		if text, _ := p.line(i); p.search.MatchString(clean(text)) {
			p.found, p.follow = i, false
			p.top = max(0, min(i-p.height/2, total-p.height))
			return nil
		}
	}
	return p.env.Say("It is not there.")
}

// View draws the page.
func (p *Page) View(width, height int) []string {
	p.width, p.height = width, max(0, height)
	if p.lines() == 0 {
		return []string{p.env.Dim.Render(ui.Cut(ui.Safe(p.nothing()), width, p.env.Cut))}
	}
	var out []string
	if p.follow {
		out = p.draw(max(0, p.lines()-height), p.lines())
		return out[max(0, len(out)-height):]
	}
	p.top = max(0, min(p.top, p.lines()-1))
	out = p.draw(p.top, min(p.lines(), p.top+height))
	return out[:min(len(out), height)]
}

// nothing says why there is nothing to see.
func (p *Page) nothing() string {
	switch {
	case errors.Is(p.err, fs.ErrNotExist):
		return p.path + " is not there yet, or on no volume of this machine."
	case p.err != nil:
		return p.err.Error()
	case p.path == "":
		return "Asking where the output is ..."
	}
	return p.path + " is empty."
}

func (p *Page) draw(from, to int) []string {
	var out []string
	for i := from; i < to; i++ {
		raw, at := p.line(i)
		text := ui.Safe(clean(raw))
		if p.stamps {
			stamp := "              "
			if !at.IsZero() {
				stamp = at.In(p.env.Now().Location()).Format("15:04:05.000") + "  "
			}
			text = stamp + text
		}
		hit := p.search != nil && p.search.MatchString(text)
		parts := []string{ui.Window(text, p.across, p.width)}
		if p.wrap {
			parts = pieces(text, p.width)
		}
		for _, part := range parts {
			if hit && i == p.found {
				part = p.env.Selected.Render(part)
			} else if hit {
				part = p.env.Marked.Render(part)
			}
			out = append(out, part)
		}
	}
	return out
}

// pieces breaks a line into pieces of at most width cells.
func pieces(text string, width int) []string {
	if width <= 0 || ui.Width(text) <= width {
		return []string{text}
	}
	var out []string
	for from, all := 0, ui.Width(text); from < all; from += width {
		out = append(out, ui.Window(text, from, width))
	}
	return out
}

// Title names the file and tells what the page does with it.
func (p *Page) Title() string {
	text := p.id + " " + p.path
	switch {
	case p.paused:
		text += " [paused]"
	case p.follow:
		text += " [following]"
	default:
		text += fmt.Sprintf(" [line %d of %d]", p.top+1, p.lines())
	}
	if p.ring.cut {
		text += " [the last 10 MB]"
	}
	if p.err != nil && p.lines() > 0 {
		text += " [" + p.err.Error() + "]"
	}
	return ui.Safe(text)
}

// Hints are the most useful actions.
func (p *Page) Hints() []ui.Action {
	return []ui.Action{ui.Back, ui.Filter, ui.Next, ui.Pause, ui.Errors, ui.Bottom, ui.Help}
}

// Line is the command that tells the same.
func (p *Page) Line() string { return "tail -F " + p.path }
