package rest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate"
	"github.com/berth-hpc/berth/translate/format"
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
)

// description is the description of a job: its properties, and the two of them that are not
// options.
type description map[string]json.RawMessage

// submit serves POST job/submit.
func submit(r *request) ([]byte, error) {
	data, err := r.readBody()
	if err != nil {
		return nil, err
	}
	var in submission
	if len(data) > 0 && json.Unmarshal(data, &in) != nil {
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
			args = append(args, "script")
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
		if own, ok := parts[0]["script"]; ok && json.Unmarshal(own, &script) != nil {
			return "", badProperty("script", errNotText)
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
	counts := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(d)) {
		switch name {
		case propertyEnvironment, propertyDirectory, "script", propertyCPUBinding:
			continue
		}
		p := table[name]
		if p == nil {
			return nil, unknownProperty(name)
		}
		if string(d[name]) == "null" {
			continue
		}
		value, err := p.value(d[name])
		if err != nil {
			return nil, badProperty(name, err)
		}
		if p.option == "" { // minimum_nodes and maximum_nodes are one option
			counts[name] = value
			continue
		}
		switch value {
		case omitted:
		case bare:
			args = append(args, "--"+p.option)
		case negated:
			args = append(args, "--no-"+p.option)
		default:
			args = append(args, "--"+p.option+"="+value)
		}
	}
	return append(args, nodeCounts(counts["minimum_nodes"], counts["maximum_nodes"])...), nil
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
		value, err := text(object[name])
		if err != nil || name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(value, "\x00") {
			return nil, badProperty(propertyEnvironment, fmt.Errorf("bad variable %q", name))
		}
		list = append(list, name+"="+value)
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
