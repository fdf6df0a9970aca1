package scontrol

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/translate/value"
)

// updateError returns the error for one target that could not be changed.
func updateError(s *specification, item status.OperationStatus) error {
	text := escapeLines(s.asTyped(item))
	switch s.entity {
	case status.EntityJob:
		return jobError(s, item, text)
	case status.EntityPartition:
		if item.Code == status.CodeInvalidCount {
			return slurmerr.New(slurmerr.Refused, text)
		}
		if item.Code.AboutSettings() {
			return notSent(partitionError(item.Code, text))
		}
	case status.EntityReservation:
		return reservationError(item, text)
	case status.EntityNode, status.EntityStep:
		if e := settingError(item, text); e != nil {
			return e
		}
	}
	return plain("slurm_update error: %s", text)
}

// settingError returns the error for a setting of a job, a step or a node that Slurm's
// scontrol finds itself; nil: the cluster refused.
func settingError(item status.OperationStatus, text string) error {
	switch item.Code {
	case status.CodeUnknownParameter:
		return plain("%s\nRequest aborted", text)
	case status.CodeNoChanges:
		if item.Job == "" {
			return plain("%s", text)
		}
	case status.CodeInvalidValue, status.CodeInvalidCount:
		return slurmerr.New(slurmerr.Refused, text)
	}
	return nil
}

// jobError returns the error for a job that could not be changed: in Slurm's form for
// errors that scontrol finds without the job, and with the task first for a task of an
// array.
func jobError(s *specification, item status.OperationStatus, text string) error {
	switch {
	case item.Code == status.CodeInvalidInstant && item.Value == "":
		return plain("No changes specified")
	case item.Code == status.CodeInvalidInstant:
		return plain("%s\nNo changes specified", notAnInstant(item.Value))
	case item.Code == status.CodeInvalidValue && item.Parameter == "MailType":
		return plain("%s", text)
	case item.Code == status.CodeInvalidValue && item.Parameter == "UserID":
		return plain("%s\nRequest aborted", text)
	}
	if e := settingError(item, text); e != nil {
		return e
	}
	id := printable.Escape(item.Job)
	if item.Code == status.CodeInvalidJobID && s.readsJob() {
		return slurmerr.New(slurmerr.Refused, "Could not load state information for job "+id+": "+text)
	}
	return plain("%s", aboutJob(id, text))
}

// readsJob reports whether Slurm's scontrol reads the job before it changes it.
func (s *specification) readsJob() bool {
	return slices.ContainsFunc(s.keys, func(key string) bool {
		return slices.Contains([]string{"ReqNodeList", "NodeList", "NumNodes", "ReqNodes"}, key)
	})
}

// refusesSetting reports whether a key is unknown, or a number of nodes is none: both come
// before the job is read.
func (s *specification) refusesSetting() bool {
	return slices.ContainsFunc(s.keys, func(key string) bool {
		known := slices.ContainsFunc(jobKeys, func(k abbreviated) bool {
			return k.key == strings.TrimRight(key, "+-")
		})
		nodes := key == "NumNodes" || key == "ReqNodes"
		return !known || nodes && s.set[key] != "" && (s.set[key][0] < '0' || s.set[key][0] > '9')
	})
}

// checkReadJob refuses what is not the id of one job if the job must be read.
func (s *specification) checkReadJob() error {
	if s.names == "" || !s.readsJob() || strings.Trim(s.names, "0123456789_+") == "" {
		return nil
	}
	if s.refusesSetting() {
		return nil // the server refuses that before it looks for the job, as Slurm's scontrol
	}
	e := slurmerr.New(slurmerr.Refused, "Invalid job ID "+printable.Escape(s.names))
	e.Before = s.badInstants()
	return e
}

// badInstants returns the lines about points in time that scontrol cannot read.
func (s *specification) badInstants() (lines []string) {
	for _, key := range s.keys {
		switch key {
		case "StartTime", "EligibleTime", "EndTime", "Deadline":
			if _, err := value.Instant(s.set[key], time.Now()); err != nil {
				lines = append(lines, notAnInstant(s.set[key]))
			}
		}
	}
	return lines
}

// reservationError returns the error for a reservation that could not be changed.
func reservationError(item status.OperationStatus, text string) error {
	if !item.Code.AboutSettings() {
		return plain("Error updating the reservation: %s\nslurm_update error: %s", text, text)
	}
	e := slurmerr.New(slurmerr.Refused, text)
	e.After = noError
	if item.Code == status.CodeInvalidInstant {
		e.Before = []string{notAnInstant(item.Value)}
		e.After = "slurm_update error: Invalid time specified\n"
	}
	return e
}

// notAnInstant returns the line about a value that is not a point in time.
func notAnInstant(v string) string {
	pos := 0
	_, err := value.Instant(v, time.Now())
	if e, ok := errors.AsType[*value.InstantError](err); ok {
		pos = e.Pos
	}
	return "Invalid time specification (pos=" + strconv.Itoa(pos) + "): " + escapeLines(v)
}

// escapeLines is printable.Escape for a text of several lines. Unlike
// printable.EscapeLines it escapes tabs.
func escapeLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = printable.Escape(l)
	}
	return strings.Join(lines, "\n")
}

// noError is what Slurm's scontrol update adds if it sent no request.
const noError = "slurm_update error: No error\n"

// notSent returns err in the form of an update that was not sent. Errors with lines of
// their own instead of a message stay as they are.
func notSent(err error) error {
	var e *slurmerr.Error
	if errors.As(err, &e) && e.Message != "" {
		e.After = noError
	}
	return err
}

// partitionError returns the error for a setting of a partition that Slurm's scontrol
// finds itself.
func partitionError(code status.ErrorCode, text string) error {
	if code != status.CodeUnknownParameter {
		return slurmerr.New(slurmerr.Refused, text)
	}
	e := slurmerr.New(slurmerr.Refused, "Request aborted")
	e.Before = []string{"scontrol: error: " + text, ""}
	return e
}

// stepNamed reports whether name is JOB.STEP, or a job with all of its steps.
func stepNamed(name string) bool {
	id, err := value.ParseStepID(name)
	return err == nil && id.Job > 0
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

// createError returns the error for an object that could not be created.
func createError(s *specification, item status.OperationStatus) error {
	text := escapeLines(s.asTyped(item))
	isReservation := s.entity == status.EntityReservation
	switch {
	case item.Code.AboutSettings() && !isReservation:
		return partitionError(item.Code, text)
	case item.Code.AboutSettings():
		e := slurmerr.New(slurmerr.Refused, text)
		if item.Code == status.CodeInvalidInstant {
			e.Before = []string{notAnInstant(item.Value)}
		}
		return e
	case isReservation && (item.Code == status.CodeNodesBusy || item.Code == status.CodeNodesUnavailable):
		return plain(
			"Error creating the reservation: %s\n%s",
			text,
			"Note, unless nodes are directly requested a reservation must exist in a single partition.\n"+
				"If no partition is requested the default partition is assumed.",
		)
	}
	return plain("Error creating the %s: %s", s.entity, text)
}
