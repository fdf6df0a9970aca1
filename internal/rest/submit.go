package rest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate"
	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/value"
)

// submission is the body of POST job/submit. A heterogeneous job has several descriptions.
type submission struct {
	Script string
	Job    description
	Jobs   []description
}

// Properties that are not options of sbatch.
const (
	propertyEnvironment = "environment"
	propertyDirectory   = "current_working_directory"
	propertyCPUBinding  = "cpu_binding"
	propertyScript      = "script"
	propertyArguments   = "argv"
)

// description is the description of a job: its properties, and the two of them that are not
// options.
type description map[string]json.RawMessage

// submit serves POST job/submit.
func submit(r *request) ([]byte, error) {
	var in submission
	if len(r.body) > 0 && json.Unmarshal(r.body, &in) != nil {
		return nil, errUnreadable
	}
	parts := in.Jobs
	if in.Job != nil {
		parts = append([]description{in.Job}, parts...)
	}
	s, err := r.translate(&in, parts)
	if err != nil {
		return nil, refusal(err, "", errorCode)
	}
	done, err := r.session.client.Submit(r.ctx(), s)
	if err != nil {
		return nil, refusal(err, "", errorCode)
	}
	return encode(append(r.head(), per("job_id", done.ID, "step_id", "BATCH", "job_submit_user_msg", "")...)), nil
}

// translate returns the job that the descriptions request, by the same rules as those of
// sbatch. As in Slurm, the lines #SBATCH of the script are not options.
func (r *request) translate(in *submission, parts []description) (*jobs.Submission, error) {
	script, err := in.script(parts)
	if err != nil {
		return nil, err
	}
	var args []string
	for i, part := range parts {
		list, err := part.arguments(r.modern())
		if err != nil {
			return nil, err
		}
		if i > 0 {
			args = append(args, ":")
		}
		args = append(args, list...)
		if i == 0 {
			words, err := part.words()
			if err != nil {
				return nil, err
			}
			args = append(append(args, "script"), words...)
		}
	}
	environment, err := parts[0].environment()
	if err != nil {
		return nil, err
	}
	dir, err := parts[0].directory()
	if err != nil {
		return nil, err
	}
	s, err := translate.Sbatch(translate.Input{
		Args:       args,
		Script:     withoutDirectives(script),
		ScriptName: "script",
		Dir:        dir,
		Hostname:   r.api.host(),
		Now:        r.now,
		Umask:      -1,
		ReadFile:   func(string) ([]byte, error) { return nil, errors.New("no files here") },
		UID:        -1,
	})
	if err != nil {
		return nil, err
	}
	if _, named := parts[0]["name"]; !named {
		s.Job.Name = "" // as in Slurm
	}
	return &jobs.Submission{
		Job: s.Job, Components: s.Components, Script: []byte(script), Environment: environment,
	}, nil
}

// script returns the script, which may be a property of the first description.
func (in *submission) script(parts []description) (string, error) {
	script := in.Script
	if len(parts) > 0 && script == "" {
		if own, ok := parts[0][propertyScript]; ok && json.Unmarshal(own, &script) != nil {
			return "", badProperty(propertyScript, errNotText)
		}
	}
	switch {
	case script == "":
		return "", &failure{number: errNoScript, spelling: errorCode}
	case len(parts) == 0:
		return "", &failure{code: http.StatusBadRequest, number: errNoJob, spelling: errorCode}
	}
	return script, nil
}

var errNotText = errors.New("a string expected")

// withoutDirectives returns the first line of a script, which names its interpreter.
func withoutDirectives(script string) []byte {
	first, _, _ := strings.Cut(script, "\n")
	return []byte(first + "\n")
}

// arguments returns the options of a description, in the order of their names.
func (d description) arguments(modern bool) ([]string, error) {
	table := map[string]*property{}
	all := propertiesOf(modern)
	for i := range all {
		table[all[i].name] = &all[i]
	}
	var args []string
	pieces := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(d)) {
		switch name {
		case propertyEnvironment, propertyDirectory, propertyScript, propertyArguments, propertyCPUBinding:
			continue
		}
		p := table[name]
		if p == nil {
			return nil, unknownProperty(name)
		}
		if string(d[name]) == "null" {
			continue
		}
		given, err := p.value(d[name])
		if err != nil {
			return nil, badProperty(name, err)
		}
		if p.option == "" { // a part of an option
			pieces[name] = given
			continue
		}
		switch given {
		case omitted:
		case bare:
			args = append(args, "--"+p.option)
		case negated:
			args = append(args, "--no-"+p.option)
		default:
			args = append(args, "--"+p.option+"="+given)
		}
	}
	return append(args, combined(pieces)...), nil
}

// combined returns the options that several properties describe together.
func combined(pieces map[string]string) []string {
	args := nodeCounts(pieces["minimum_nodes"], pieces["maximum_nodes"])
	if sig := pieces["kill_warning_signal"]; sig != "" {
		if delay := pieces["kill_warning_delay"]; delay != "" {
			sig += "@" + delay
		}
		args = append(args, "--signal="+sig)
	}
	if n := pieces["required_switches"]; n != "" && n != "0" {
		if seconds, err := strconv.ParseInt(pieces["wait_for_switch"], 10, 32); err == nil && seconds > 0 {
			n += "@" + value.FormatSeconds(seconds)
		}
		args = append(args, "--switches="+n)
	}
	return args
}

// nodeCounts returns the option for the least and the greatest number of nodes; "": not given.
func nodeCounts(least, most string) []string {
	switch {
	case least == "" && most == "":
		return nil
	case most == "":
		return []string{"--nodes=" + least}
	case least == "":
		least = "1"
	}
	return []string{"--nodes=" + least + "-" + most}
}

// words returns the arguments of the script. As in sbatch, the first element of "argv" is the
// name of the script.
func (d description) words() ([]string, error) {
	v, ok := d[propertyArguments]
	if !ok || string(v) == "null" {
		return nil, nil
	}
	var list []string
	if json.Unmarshal(v, &list) != nil {
		return nil, badProperty(propertyArguments, errors.New("an array of strings expected"))
	}
	if slices.Contains(list, ":") {
		return nil, badProperty(propertyArguments, errors.New("a colon is no argument"))
	}
	return list[min(1, len(list)):], nil
}

// environment returns the environment of the job: an object, or an array of NAME=value.
func (d description) environment() ([]string, error) {
	v, ok := d[propertyEnvironment]
	if !ok || string(v) == "null" {
		return nil, &failure{
			code: http.StatusBadRequest, number: errRejected, spelling: errorCode,
			before: []format.Object{per("error", "environment must be set", "error_code", errNoEnvironment)},
		}
	}
	var list []string
	if json.Unmarshal(v, &list) == nil {
		return d.withBinding(list)
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(v, &object) != nil {
		return nil, badProperty(propertyEnvironment, errors.New("an object or an array of NAME=value expected"))
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		v, err := text(object[name])
		if err != nil || name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(v, "\x00") {
			return nil, badProperty(propertyEnvironment, fmt.Errorf("bad variable %q", name))
		}
		list = append(list, name+"="+v)
	}
	return d.withBinding(list)
}

// withBinding returns the environment with the binding of tasks, which is an option of srun
// only.
func (d description) withBinding(environment []string) ([]string, error) {
	v, ok := d[propertyCPUBinding]
	if !ok || string(v) == "null" {
		return environment, nil
	}
	binding, err := text(v)
	if err != nil {
		return nil, badProperty(propertyCPUBinding, err)
	}
	return append(environment, "SLURM_CPU_BIND="+binding), nil
}

// directory returns the working directory of the job.
func (d description) directory() (string, error) {
	v, ok := d[propertyDirectory]
	if !ok {
		return "/tmp", nil
	}
	dir, err := text(v)
	if err != nil || !strings.HasPrefix(dir, "/") {
		return "", badProperty(propertyDirectory, errors.New("an absolute path expected"))
	}
	return dir, nil
}

// messageOf returns the message of an error without the hints that commands print.
func messageOf(err error) string {
	if e, ok := errors.AsType[*slurmerr.Error](err); ok && e.Message != "" {
		return e.Message
	}
	return fmt.Sprint(err)
}
