package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/berth-hpc/berth/translate/option"
)

// defined is one call with -v, with which the commands print the parsed options ("defined
// options"), and its result. No job is submitted: sbatch and srun are called with --test-only,
// salloc with a partition that does not exist.
type defined struct {
	Command string   `json:"command"`
	Args    []string `json:"args"`
	Env     []string `json:"env,omitempty"`
	Exit    int      `json:"exit"` // of the parser: 0 if options were printed
	Before  string   `json:"before,omitempty"`
	// Options are the printed options, without those that the recorder adds.
	Options map[string]string `json:"options,omitempty"`
}

// definedCases returns calls of every command with values of its options.
func definedCases() []defined {
	var out []defined
	add := func(c option.Command, env []string, args ...string) {
		out = append(out, defined{Command: c.String(), Args: args, Env: env})
	}
	commands := []option.Command{option.Sbatch, option.Srun, option.Salloc}
	for _, vc := range values {
		for _, c := range commands {
			o := option.Lookup(c, vc.name)
			if o == nil || o.Since != "" {
				continue
			}
			for _, v := range vc.values {
				add(c, nil, spell(vc.name, v))
			}
			for _, name := range o.EnvNames(c) {
				v := strings.TrimPrefix(vc.values[0], "=")
				add(c, []string{name + "=" + v})
			}
		}
	}
	for _, c := range commands {
		for _, line := range lines3 {
			add(c, nil, strings.Split(line, "|")...)
		}
		for _, env := range environs {
			add(c, strings.Split(env, "|"))
		}
	}
	return out
}

// spell returns an option with a value; "" is an option without one.
func spell(name, v string) string {
	if v == "" {
		return "--" + name
	}
	return "--" + name + v
}

// callDefined makes the call.
func callDefined(d defined) defined {
	check(os.WriteFile(filepath.Join(directory, "s.sh"), []byte(plain), 0o755))
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	args := append([]string{"-v"}, d.Args...)
	switch d.Command {
	case "sbatch":
		args = append([]string{"-v", "--test-only"}, d.Args...)
		args = append(args, "s.sh")
	case "srun":
		args = append([]string{"-v", "--test-only"}, d.Args...)
		args = append(args, "true")
	case "salloc":
		args = append([]string{"-v", "-p", "nosuch"}, d.Args...)
		args = append(args, "true")
	}
	cmd := exec.CommandContext(ctx, d.Command, args...)
	cmd.Dir = directory
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=/root", "TZ=UTC"}, d.Env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	err := cmd.Run()
	if exit, ok := err.(*exec.ExitError); ok {
		d.Exit = exit.ExitCode()
	} else {
		check(err)
	}
	d.read(stderr.String())
	return d
}

// read parses the list of options in the output.
func (d *defined) read(text string) {
	before, rest, found := strings.Cut(text, d.Command+": defined options\n")
	d.Before = before
	if !found {
		return
	}
	d.Exit = 0
	d.Options = map[string]string{}
	list, _, _ := strings.Cut(rest, d.Command+": end of defined options\n")
	for line := range strings.Lines(list) {
		line = strings.TrimSuffix(strings.TrimPrefix(line, d.Command+": "), "\n")
		name, v, ok := strings.Cut(line, ": ")
		if !ok {
			continue
		}
		d.Options[strings.TrimSpace(name)] = v
	}
	for name, v := range map[string]string{"verbose": "1", "test-only": "set", "partition": "nosuch"} {
		if d.Options[name] == v {
			delete(d.Options, name)
		}
	}
}
