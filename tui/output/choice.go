package output

import (
	"fmt"
	"strconv"

	tea "charm.land/bubbletea/v2"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/tui/ui"
)

// sourceKind is where output is read from.
type sourceKind uint8

const (
	fromAny   sourceKind = iota // the file, or else the agent
	fromFile                    // the file on this machine
	fromAgent                   // the file as the job's agent reads it
	fromStep                    // the output of a step's tasks
)

// choice is the output that the user has chosen.
type choice struct {
	kind sourceKind
	step int32 // the step, with fromStep
	task int32 // its task; noTask: all of them
}

// maxTasks bounds the tasks of a step that can be chosen one by one.
const maxTasks = 256

// chosen reports the user's choice.
type chosen struct {
	page   *Page
	choice choice
}

// stepsLoaded carries the steps that can be chosen.
type stepsLoaded struct {
	page  *Page
	steps []status.Step
	err   error
}

// requestSteps requests the steps of the job, which can then be chosen.
func (p *Page) requestSteps() tea.Cmd {
	if p.job == nil {
		return p.env.Notify("The job has ended: only its file can be shown.")
	}
	env, id := p.env, strconv.FormatInt(p.job.ID, 10)
	return func() tea.Msg {
		ctx, cancel := env.RequestContext()
		defer cancel()
		list, err := env.Cluster.Steps(ctx, jobs.StepFilter{Jobs: []string{id}})
		if err != nil {
			return stepsLoaded{page: p, err: err}
		}
		return stepsLoaded{page: p, steps: list.Items}
	}
}

// showChoices shows the list of sources.
func (p *Page) showChoices(o stepsLoaded) tea.Cmd {
	if o.page != p || p.hidden {
		return nil
	}
	if o.err != nil {
		return p.env.NotifyError(o.err)
	}
	var items []ui.Choice
	choices := map[string]choice{} // by the name of the item
	add := func(c choice, name, text string) {
		items = append(items, ui.Choice{Name: name, Text: text})
		choices[name] = c
	}
	add(choice{fromAny, 0, noTask}, "usual", "the file, else the job's agent")
	add(choice{fromFile, 0, noTask}, "file", "the file on this machine")
	if p.mayAttach() {
		add(choice{fromAgent, 0, noTask}, "agent", "the file as the job's first node has it")
		for i := range o.steps {
			addStep(&o.steps[i], add)
		}
	}
	return p.env.Post(ui.Choose{Title: "Output of " + p.id, Items: items, OnSubmit: func(c []ui.Choice) tea.Cmd {
		return p.env.Post(chosen{p, choices[c[0].Name]})
	}})
}

// addStep adds the choices for a step: all of its tasks, and each of them. The
// batch script and other special steps have none.
func addStep(s *status.Step, add func(c choice, name, text string)) {
	if s.Number < 0 {
		return
	}
	number := int32(s.Number)
	text := fmt.Sprintf("%s, %d tasks, from now on", printable.Escape(s.Name), s.Tasks)
	add(choice{fromStep, number, noTask}, "step "+s.ID, text)
	for task := range min(s.Tasks, maxTasks) {
		add(choice{fromStep, number, task}, fmt.Sprintf("step %s task %d", s.ID, task), "")
	}
}

// setChoice shows the chosen output. Another task of the same step is shown with
// the lines that were received before.
func (p *Page) setChoice(c choice) tea.Cmd {
	same := c.kind == p.choice.kind && c.step == p.choice.step && p.source != nil && !p.finished
	p.choice = c
	if same {
		p.showTask(c.task)
		return nil
	}
	cmd := p.restart()
	p.showTask(c.task)
	return cmd
}
