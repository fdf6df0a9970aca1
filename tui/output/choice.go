package output

import (
	"fmt"
	"strconv"

	tea "charm.land/bubbletea/v2"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/tui/ui"
)

// Kinds of sources to choose from.
const (
	fromAny   = iota // the file, else the agent
	fromFile         // the file, whatever it is
	fromAgent        // the file as the job's agent reads it
	fromStep         // what the tasks of a step write
)

// choice is what the user wants to see.
type choice struct {
	kind int
	step int32 // of fromStep
	task int32 // of it; noTask: all
}

// mostTasks are listed one by one; of more, all are seen together.
const maxTasks = 256

type chosen struct {
	page   *Page
	choice choice
}

// offered are the steps to choose from.
type stepsLoaded struct {
	page  *Page
	steps []status.Step
	err   error
}

// choose asks which steps run, to offer them.
func (p *Page) requestSteps() tea.Cmd {
	if p.job == nil {
		return p.env.Notify("The job is over: there is its file alone.")
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

// offer shows what there is to choose from.
func (p *Page) showChoices(o stepsLoaded) tea.Cmd {
	if o.page != p || p.hidden {
		return nil
	}
	if o.err != nil {
		return p.env.NotifyError(o.err)
	}
	items := []ui.Choice{{Name: "usual", Text: "the file, else the job's agent"}, {Name: "file", Text: "the file on this machine"}}
	choices := []choice{{fromAny, 0, noTask}, {fromFile, 0, noTask}}
	if p.mayAttach() {
		items, choices = append(items, ui.Choice{Name: "agent", Text: "the file as the job's first node has it"}), append(choices, choice{fromAgent, 0, noTask})
		for i := range o.steps {
			t := &o.steps[i]
			if t.Number < 0 {
				continue
			}
			number := int32(t.Number)
			items = append(items, ui.Choice{Name: "step " + t.ID, Text: fmt.Sprintf("%s, %d tasks, from now on", ui.Safe(t.Name), t.Tasks)})
			choices = append(choices, choice{fromStep, number, noTask})
			for task := range min(t.Tasks, maxTasks) {
				items = append(items, ui.Choice{Name: fmt.Sprintf("step %s task %d", t.ID, task)})
				choices = append(choices, choice{fromStep, number, task})
			}
		}
	}
	return p.env.Post(ui.Choose{Title: "Output of " + p.id, Items: items, OnSubmit: func(c []ui.Choice) tea.Cmd {
		for i := range items {
			if items[i].Name == c[0].Name {
				return p.env.Post(chosen{p, choices[i]})
			}
		}
		return nil
	}})
}

// turn shows something else; another task of the same step without losing what
// was seen of it.
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
