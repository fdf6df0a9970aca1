package scontrol

import (
	"errors"
	"strings"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/translate/value"
)

// updateError returns the error for one target that could not be changed.
func updateError(s *specification, item status.OperationStatus) error {
	if s.entity == status.EntityPartition {
		if e := partitionError(s, item.Error); e != nil {
			return locally(e)
		}
	}
	switch {
	case strings.HasPrefix(item.Error, "Update of this parameter is not supported"),
		strings.HasPrefix(item.Error, "Invalid UserID: "):
		return plain("%s\nRequest aborted", s.asTyped(item.Error))
	case item.Job == "" && item.Error == "No changes specified":
		return plain("%s", item.Error)
	case strings.HasPrefix(item.Error, "Invalid ") && strings.HasSuffix(item.Error, " value"),
		strings.HasPrefix(item.Error, "TimeLimit decrement larger"):
		return slurmerr.New(slurmerr.Refused, item.Error)
	}
	switch s.entity {
	case status.EntityJob:
		return jobError(item)
	case status.EntityReservation:
		if local(item.Error) {
			text := strings.Replace(s.typed(item.Error), notCreated, notUpdated, 1)
			e := slurmerr.New(slurmerr.Refused, text)
			e.After = noError
			if e.Before = noInstantOf(text); e.Before != nil {
				e.After = "slurm_update error: Invalid time specified\n"
			}
			return e
		}
		return plain("Error updating the reservation: %s\nslurm_update error: %s", item.Error, item.Error)
	}
	return plain("slurm_update error: %s", item.Error)
}

// escapeLines is format.Escape for a text of several lines.
func escapeLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = format.Escape(l)
	}
	return strings.Join(lines, "\n")
}

// noError is what Slurm's scontrol update adds if it sent no request.
const noError = "slurm_update error: No error\n"

// locally returns err in the form of update for errors that it finds itself.
func locally(err error) error {
	var e *slurmerr.Error
	if !errors.As(err, &e) || e.Message == "" || strings.HasPrefix(e.Message, "Invalid numeric value ") ||
		strings.HasSuffix(e.Message, "node count") {
		return err
	}
	e.Message = strings.Replace(e.Message, notCreated, notUpdated, 1)
	e.After = noError
	return e
}

// partitionError returns the error for a setting of a partition that Slurm's scontrol
// finds itself; nil: the cluster refused.
func partitionError(s *specification, text string) error {
	switch {
	case strings.HasPrefix(text, "Update of this parameter is not supported"):
		e := slurmerr.New(slurmerr.Refused, "Request aborted")
		e.Before = []string{"scontrol: error: " + s.asTyped(text), ""}
		return e
	case strings.HasPrefix(text, "Invalid input"),
		strings.HasPrefix(text, "Invalid numeric value "),
		strings.HasSuffix(text, "is not a valid node count"),
		strings.HasPrefix(text, "Invalid ") && strings.Contains(text, " value: "):
		return slurmerr.New(slurmerr.Refused, s.typed(text))
	}
	return nil
}

// stepNamed reports whether name is JOB.STEP, or a job with all of its steps.
func stepNamed(name string) bool {
	id, err := value.ParseStepID(name)
	return err == nil && id.Job > 0
}

// asTyped replaces the parameter at the end of a message by the word as it was typed.
func (s *specification) asTyped(text string) string {
	for _, w := range s.words {
		if n := len(text) - len(w); n >= 0 && strings.EqualFold(text[n:], w) {
			return text[:n] + w
		}
	}
	return text
}

// noInstant are the beginnings of messages about values that are not points in time.
var noInstant = []string{"Invalid StartTime value: ", "Invalid EndTime value: ", "Invalid Deadline value: "}

// jobError returns the error for a job that could not be changed: in Slurm's form for
// errors that scontrol finds without the job, and with the task first for a task of an
// array.
func jobError(item status.OperationStatus) error {
	text := item.Error
	for _, p := range noInstant {
		if v, is := strings.CutPrefix(text, p); is && v == "" {
			return plain("No changes specified")
		} else if is {
			return plain("Invalid time specification (pos=0): %s\nNo changes specified", v)
		}
	}
	switch {
	case strings.HasPrefix(text, "Invalid MailType"):
		return plain("%s", text)
	case strings.HasPrefix(text, "Invalid ") && strings.Contains(text, " value: "),
		strings.HasPrefix(text, "Invalid numeric value "),
		strings.HasSuffix(text, "Value ignored"):
		return slurmerr.New(slurmerr.Refused, text)
	}
	return plain("%s", aboutJob(item.Job, text))
}

// aboutJob returns Slurm's form of a message about a job, or about tasks of one.
func aboutJob(job, text string) string {
	if tasks(job) {
		return job + ": " + text
	}
	return text + " for job " + job
}

// tasks reports whether job names tasks of an array in a valid form.
func tasks(job string) bool {
	_, index, found := strings.Cut(job, "_")
	return found &&
		(index == "*" || strings.HasPrefix(index, "[") && strings.HasSuffix(index, "]") ||
			index != "" && strings.Trim(index, "0123456789,-:") == "")
}

// The ends of messages about a reservation that Slurm's scontrol prints itself, without
// the controller.
const (
	notCreated = ".  No reservation created."
	notUpdated = ".  No reservation update."
)

// noInstantOf returns the line before a message about a value that is not a point in
// time.
func noInstantOf(text string) []string {
	if !strings.HasPrefix(text, "Invalid start time ") && !strings.HasPrefix(text, "Invalid end time ") {
		return nil
	}
	_, v, _ := strings.Cut(text, "=")
	v, _, _ = strings.Cut(v, ".  No reservation")
	return []string{"Invalid time specification (pos=0): " + v}
}

// local reports whether Slurm's scontrol finds the error itself, without the
// controller.
func local(text string) bool {
	if strings.HasSuffix(text, notCreated) || strings.HasSuffix(text, notUpdated) {
		return true
	}
	for _, start := range []string{"Invalid node count ", "Invalid core count ", "TRES type ",
		"couldn't identify configured TRES ", "invalid TRES "} {
		if strings.HasPrefix(text, start) {
			return true
		}
	}
	return false
}

// createError returns the error for an object that could not be created.
func createError(s *specification, text string) error {
	if s.entity == status.EntityPartition {
		if e := partitionError(s, text); e != nil {
			return e
		}
	}
	switch {
	case s.entity == status.EntityReservation && local(text):
		e := slurmerr.New(slurmerr.Refused, text)
		e.Before = noInstantOf(text)
		return e
	case s.entity == status.EntityReservation && (text == "Requested nodes are busy" ||
		text == "Requested node configuration is not available"):
		return plain(
			"Error creating the reservation: %s\n%s",
			text,
			"Note, unless nodes are directly requested a reservation must exist in a single partition.\n"+
				"If no partition is requested the default partition is assumed.",
		)
	}
	return plain("Error creating the %s: %s", s.entity, text)
}
