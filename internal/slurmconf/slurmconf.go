// Package slurmconf reads slurm.conf (slurm.conf(5) of Slurm 22.05) into
// Berth's terms: the parameters of a cluster, its partitions, and descriptions
// of its nodes. It never fails on what Berth does not do, but names it.
package slurmconf

import (
	"fmt"
	"strings"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// Config has the contents of a slurm.conf.
type Config struct {
	Cluster v1alpha1.ClusterSpec
	// Nodes in the order of the file, without those in state FUTURE.
	Nodes []Node
	// Partitions in the order of the file. Templates and shared paths, which slurm.conf
	// does not have, are empty.
	Partitions []v1alpha1.Partition
	Warnings   []Warning
}

// Node describes a node. Zero: not given.
type Node struct {
	Name           string // in slurm.conf's writing
	CPUs           int
	Sockets        int // on all boards
	CoresPerSocket int
	ThreadsPerCore int
	RealMemory     int64 // MiB
	TmpDisk        int64 // MiB
	Features       []string
	GRES           []GRES
	Weight         int
	State          string // "", "down" or "drain"
	Reason         string
}

// GRES is a generic resource of a node.
type GRES struct {
	Name, Type string
	Count      int64
}

// Warning names something of the file that has no effect, or another one than
// in Slurm.
type Warning struct {
	File string
	Line int
	Key  string // as the file writes it
	Text string
	// Plumbing: the parameter is about Slurm's own daemons, files and ports,
	// of which there are none here. Nothing is missing.
	Plumbing bool
}

func (w Warning) String() string {
	return fmt.Sprintf("%s:%d: %s: %s", w.File, w.Line, w.Key, w.Text)
}

// Error says where and why a file cannot be read.
type Error struct {
	File  string
	Line  int
	Text  string
	Cause error
}

func (e *Error) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Text) }

// Unwrap gives Cause.
func (e *Error) Unwrap() error { return e.Cause }

func (l line) errorf(format string, args ...any) error {
	return &Error{File: l.file, Line: l.number, Text: fmt.Sprintf(format, args...)}
}

func (l line) wrap(err error) error {
	return &Error{File: l.file, Line: l.number, Text: err.Error(), Cause: err}
}

// parser is a run of Parse.
type parser struct {
	read func(path string) ([]byte, error)

	config     Config
	nodeLine   map[string]line // where each node is defined
	nodes      map[string]*Node
	order      []string
	future     map[string]bool
	partitions map[string]line
	warned     map[Warning]bool
	expanded   int                 // names that host lists stood for
	sets       map[string][]string // NodeSet -> nodes

	nodeDefaults      []pair
	partitionDefaults []pair
	downDefaults      []pair

	// Lines that name nodes are read when all nodes are known.
	downLines, setLines, partitionLines [][]pair

	cluster string // for %c in the names of included files
}

// Parse parses the file of that name with read, including the files that it includes.
// The error is an *Error, or that of read for the first file.
func Parse(file string, read func(path string) ([]byte, error)) (*Config, error) {
	p := &parser{
		read: read, nodeLine: map[string]line{}, nodes: map[string]*Node{}, future: map[string]bool{},
		partitions: map[string]line{}, sets: map[string][]string{}, warned: map[Warning]bool{},
	}
	all, err := p.lines(file, 0)
	if err != nil {
		return nil, err
	}
	for _, l := range all {
		if err := p.line(l); err != nil {
			return nil, err
		}
	}
	for _, step := range []func() error{p.readSets, p.readDown, p.readPartitions} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	for _, name := range p.order {
		if !p.future[name] {
			p.config.Nodes = append(p.config.Nodes, *p.nodes[name])
		}
	}
	return &p.config, nil
}

// line reads one line: of parameters, or of a node, partition, ...
func (p *parser) line(l line) error {
	all, err := pairs(l)
	if err != nil {
		return err
	}
	switch first := all[0]; strings.ToLower(first.key) {
	case "nodename":
		return p.node(all)
	case "partitionname":
		p.partitionLines = append(p.partitionLines, all)
		return nil
	case "downnodes":
		p.downLines = append(p.downLines, all)
		return nil
	case "nodeset":
		p.setLines = append(p.setLines, all)
		return nil
	case "frontendname":
		p.warn(first, "there are no front-end nodes here")
		return nil
	}
	for _, kv := range all {
		if err := p.parameter(kv); err != nil {
			return err
		}
	}
	return nil
}

// warn adds a warning, once: a DEFAULT line is read for each line after it.
func (p *parser) warn(kv pair, format string, args ...any) {
	w := Warning{File: kv.file, Line: kv.number, Key: kv.key, Text: fmt.Sprintf(format, args...)}
	if !p.warned[w] {
		p.warned[w] = true
		p.config.Warnings = append(p.config.Warnings, w)
	}
}

func isDefault(name string) bool { return strings.EqualFold(name, "DEFAULT") }
