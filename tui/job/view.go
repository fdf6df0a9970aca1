package job

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/tui/ui"
	"github.com/berth-hpc/berth/tui/why"
)

// textBuilder builds the lines of the page.
type textBuilder struct {
	p     *Page
	width int
	lines []string
}

// heading adds a heading, after an empty line.
func (s *textBuilder) heading(text string) {
	if len(s.lines) > 0 {
		s.lines = append(s.lines, "")
	}
	s.lines = append(s.lines, s.p.env.Header.Render(ui.Truncate(text, s.width, s.p.env.Ellipsis)))
}

// field adds a name and a value, unless the value is empty. Long values are wrapped,
// never truncated.
func (s *textBuilder) field(name, value string) {
	if value == "" {
		return
	}
	label := 12
	if s.width < 40 {
		label = 0
	}
	value = printable.Escape(value)
	if label == 0 {
		value = name + ": " + value
	}
	for i, line := range ui.Wrap(value, max(1, s.width-label)) {
		if label > 0 {
			n := ""
			if i == 0 {
				n = name
			}
			line = s.p.env.Dim.Render(ui.Pad(n, label, false, "")) + line
		}
		s.lines = append(s.lines, line)
	}
}

// paragraph adds sentences, wrapped.
func (s *textBuilder) paragraph(style ui.Style, texts ...string) {
	for _, t := range texts {
		for _, line := range ui.Wrap(printable.Escape(t), s.width) {
			s.lines = append(s.lines, style.Render(line))
		}
	}
}

// render returns the whole page in lines of at most width cells.
func (p *Page) render(width int) []string {
	s := &textBuilder{p: p, width: width}
	if p.err != nil {
		s.paragraph(p.env.Bad, p.err.Error())
	}
	switch {
	case p.job != nil:
		p.queueText(s)
	case p.record != nil:
		p.recordText(s)
	case !p.loaded && p.err == nil:
		s.paragraph(p.env.Dim, "Loading job "+p.id+" ...")
	}
	return s.lines
}

// queueText writes a job of the queue.
func (p *Page) queueText(s *textBuilder) {
	j := p.job
	set := p.env.Format
	set.Now = p.env.Now().Unix()
	if j.State == "PENDING" {
		p.pendingText(s)
	}
	p.podText(s)
	s.heading("Job")
	s.field("id", format.JobID(j))
	s.field("name", j.Name)
	s.field("state", stateText(j))
	s.field("user", fmt.Sprintf("%s (%d)", j.User, j.UID))
	s.field("account", strings.Trim(j.Account+" / "+j.QOS, " /"))
	s.field("partition", j.Partition)
	s.field("priority", strconv.FormatInt(j.Priority, 10))
	s.field("dependency", j.Dependency)
	s.field("reservation", j.Reservation)
	s.field("comment", j.Comment)
	s.heading("Time")
	instant := func(t int64) string { return string(format.AppendInstant(nil, t, "", &set)) }
	s.field("submitted", instant(j.Submit))
	s.field("eligible", instant(j.Eligible))
	if j.State == "PENDING" {
		s.field("planned", instant(j.Start))
	} else {
		s.field("started", instant(j.Start))
		s.field("runs for", string(format.AppendDuration(nil, format.Elapsed(j, &set))))
		s.field("ends by", instant(j.End))
	}
	s.field("limit", string(format.AppendMinutes(nil, j.TimeLimit)))
	s.heading("Size")
	s.field("nodes", fmt.Sprintf("%d  %s", j.Nodes, j.NodeList))
	s.field("planned on", j.PlannedNodes)
	s.field("CPUs", fmt.Sprintf("%d for %d tasks", j.CPUs, j.Tasks))
	s.field("TRES", j.TRES)
	s.field("features", j.Features)
	s.field("licenses", j.Licenses)
	p.usageText(s)
	s.heading("Files")
	s.field("command", j.Command)
	s.field("directory", j.WorkDir)
	s.field("output", j.StdOut)
	s.field("errors", j.StdErr)
	s.field("input", j.StdIn)
	s.field("message", j.Message)
	if layout := strings.Split(j.Layout, ";"); j.Layout != "" {
		s.heading("Places")
		s.paragraph(ui.Style{}, layout...)
	}
}

// stateText returns the state with its reason, exit code and restarts.
func stateText(j *status.Job) string {
	text := j.State
	if j.Reason != "" && j.Reason != "None" {
		text += " (" + j.Reason + ")"
	}
	if j.ExitCode != 0 || j.Signal != 0 {
		text += fmt.Sprintf(", exit code %d:%d", j.ExitCode, j.Signal)
	}
	if j.Restarts > 0 {
		text += fmt.Sprintf(", restarted %d times", j.Restarts)
	}
	return text
}

// pendingText writes why the job is pending.
func (p *Page) pendingText(s *textBuilder) {
	s.heading("Why it waits")
	if p.facts == nil {
		s.paragraph(p.env.Dim, "Reading the queue and the nodes ...")
		return
	}
	f := *p.facts
	f.Job, f.Now = *p.job, p.env.Now().Unix()
	a := why.Explain(&f)
	s.paragraph(p.env.Strong, a.Summary)
	s.paragraph(ui.Style{}, a.Missing...)
	s.paragraph(ui.Style{}, a.Release...)
	if a.Action != "" {
		s.paragraph(p.env.Notice, a.Action)
	}
}

// formatSize returns a number of bytes in a short form.
func formatSize(bytes int64) string {
	units := "KMGTP"
	n := float64(bytes) / 1024
	i := 0
	for n >= 1024 && i < len(units)-1 {
		n /= 1024
		i++
	}
	return fmt.Sprintf("%.1f%c", n, units[i])
}

// recordText writes the accounting record of a job.
func (p *Page) recordText(s *textBuilder) {
	r := p.record
	set := p.env.Format
	instant := func(t int64) string { return string(format.AppendInstant(nil, t, "", &set)) }
	s.heading("Job, from accounting")
	s.field("id", p.id)
	s.field("name", r.Name)
	s.field("state", r.State)
	s.field("exit code", fmt.Sprintf("%d:%d", r.ExitCode, r.Signal))
	s.field("user", r.User)
	s.field("account", strings.Trim(r.Account+" / "+r.QOS, " /"))
	s.field("partition", r.Partition)
	s.field("submitted", instant(r.Submit))
	s.field("started", instant(r.Start))
	s.field("ended", instant(r.End))
	s.field("ran for", string(format.AppendDuration(nil, max(0, r.End-r.Start-r.Suspended))))
	s.field("nodes", r.NodeList)
	s.field("TRES", r.AllocTRES)
	s.field("directory", r.WorkDir)
	s.field("command", r.SubmitLine)
	s.field("comment", r.Comment)
	if len(r.Steps) == 0 {
		return
	}
	s.heading("Steps")
	for i := range r.Steps {
		t := &r.Steps[i]
		s.paragraph(ui.Style{}, fmt.Sprintf("%-12s %-10s %-12s %3d:%d  CPU %s  max RSS %s",
			t.Step, t.Name, t.State, t.ExitCode, t.Signal,
			format.AppendDuration(nil, (t.UserCPU+t.SystemCPU)/1e6), formatSize(t.RSS.Max.Amount)))
	}
}
