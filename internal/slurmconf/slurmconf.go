// Package slurmconf converts slurm.conf (slurm.conf(5) of Slurm 22.05), and the output of
// sacctmgr dump, to Berth's objects. Parameters that Berth does not support are warnings,
// not errors.
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
	// Partitions in the order of the file, without templates and shared paths, which
	// slurm.conf does not have.
	Partitions []v1alpha1.Partition
	// NodePools have the nodes in state CLOUD.
	NodePools []v1alpha1.NodePool
	Warnings  []Warning
}

// Node describes a node. Values that are not given are zero.
type Node struct {
	Name           string // as in slurm.conf
	CPUs           int
	Sockets        int // on all boards
	CoresPerSocket int
	ThreadsPerCore int
	RealMemory     int64 // MiB
	TmpDisk        int64 // MiB
	Features       []string
	GRES           []GRES
	Weight         int
	State          string // "", "down", "drain" or StateCloud
	Reason         string
}

// GRES is a generic resource of a node.
type GRES struct {
	Name, Type string
	Count      int64
}

// Warning is about a setting that has no effect in Berth, or not the same as in Slurm.
type Warning struct {
	File string
	Line int
	Key  string // as in the file
	Text string
	// DaemonOnly: the parameter only concerns Slurm's daemons, files and ports, so that
	// it is safe to ignore.
	DaemonOnly bool
}

func (w Warning) String() string {
	return fmt.Sprintf("%s:%d: %s: %s", w.File, w.Line, w.Key, w.Text)
}

// Error is an error in a line of a file.
type Error struct {
	File  string
	Line  int
	Text  string
	Cause error
}

func (e *Error) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Text) }

// Unwrap returns Cause, or nil.
func (e *Error) Unwrap() error { return e.Cause }

func (l line) errorf(format string, args ...any) error {
	return &Error{File: l.file, Line: l.number, Text: fmt.Sprintf(format, args...)}
}

func (l line) wrap(err error) error {
	return &Error{File: l.file, Line: l.number, Text: err.Error(), Cause: err}
}

// parser is the state of one Parse or ParseGRES.
type parser struct {
	read func(path string) ([]byte, error)

	config     Config
	nodeLine   map[string]line // where each node is defined
	nodes      map[string]*Node
	order      []string
	future     map[string]bool
	partitions map[string]line
	warned     map[Warning]bool
	expanded   int                 // number of names from host lists
	sets       map[string][]string // NodeSet -> nodes

	nodeDefaults      []pair
	partitionDefaults []pair
	downDefaults      []pair

	// Lines that refer to nodes; parsed after all nodes.
	downLines, setLines, partitionLines [][]pair

	power powerSaving

	cluster string // for %c in the names of included files
}

// Parse parses a slurm.conf, which it gets from read, and the files that it includes. The
// error is an *Error, or that of read for the first file.
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
	for _, step := range []func() error{p.readSets, p.readDown, p.readPartitions, p.readPools, p.readReboot} {
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

// line parses one line. Lines that refer to nodes are kept for later.
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
		p.warn(first, "front-end nodes are not supported")
		return nil
	}
	for _, kv := range all {
		if err := p.parameter(kv); err != nil {
			return err
		}
	}
	return nil
}

// warn adds a warning unless it is there already: the values of a DEFAULT line are parsed
// again for each line after it.
func (p *parser) warn(kv pair, format string, args ...any) {
	w := Warning{File: kv.file, Line: kv.number, Key: kv.key, Text: fmt.Sprintf(format, args...)}
	if !p.warned[w] {
		p.warned[w] = true
		p.config.Warnings = append(p.config.Warnings, w)
	}
}

func isDefault(name string) bool { return strings.EqualFold(name, "DEFAULT") }
