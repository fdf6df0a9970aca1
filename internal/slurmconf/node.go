package slurmconf

import (
	"errors"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/translate/hostlist"
)

// node parses a NodeName line.
func (p *parser) node(all []pair) error {
	first := all[0]
	if isDefault(first.value) {
		p.nodeDefaults = append(p.nodeDefaults, all[1:]...)
		return nil
	}
	names, err := p.hosts(first)
	if err != nil {
		return err
	}
	n, err := p.nodeFrom(first, all[1:])
	if err != nil {
		return err
	}
	future := strings.EqualFold(n.State, "future")
	if future {
		n.State = ""
		p.warn(first, "nodes in state FUTURE are ignored")
	}
	for _, name := range names {
		if old, ok := p.nodeLine[name]; ok {
			return first.errorf("node %s is defined already (%s:%d)", name, old.file, old.number)
		}
		one := *n
		one.Name = name
		p.nodeLine[name], p.nodes[name], p.future[name] = first.line, &one, future
		p.order = append(p.order, name)
	}
	return nil
}

// maxHosts limits the total number of names that the host lists of a file expand to, so
// that a short file cannot exhaust the memory.
const maxHosts = 1 << 18

// hosts expands a value that is a host list. An empty list is an error.
func (p *parser) hosts(kv pair) ([]string, error) {
	names, err := hostlist.Expand(kv.value)
	if err != nil {
		return nil, kv.wrap(err)
	}
	if p.expanded += len(names); p.expanded > maxHosts {
		return nil, kv.errorf("more than %d node names in one file", maxHosts)
	}
	if len(names) == 0 {
		return nil, kv.invalid("a list of node names")
	}
	return names, nil
}

// geometry has the processor parameters of a node line; 0: not given.
type geometry struct {
	cpus, boards, sockets, perBoard, cores, threads int
}

// nodeFrom returns a node with the values of a NodeName line, or else those of the
// NodeName=DEFAULT lines before it.
func (p *parser) nodeFrom(first pair, own []pair) (*Node, error) {
	n := &Node{}
	g := &geometry{}
	for _, kv := range slices.Concat(p.nodeDefaults, own) {
		if err := p.nodeValue(n, g, kv); err != nil {
			return nil, err
		}
	}
	if err := g.complete(n); err != nil {
		p.warn(first, "%v", err)
	}
	return n, nil
}

// nodeValue parses one value into n or g.
func (p *parser) nodeValue(n *Node, g *geometry, kv pair) error {
	small := func(to *int) error {
		v, err := kv.integer(1, 1<<16)
		*to = int(v)
		return err
	}
	var err error
	switch strings.ToLower(kv.key) {
	case "cpus", "procs":
		return small(&g.cpus)
	case "boards":
		return small(&g.boards)
	case "sockets":
		return small(&g.sockets)
	case "socketsperboard":
		return small(&g.perBoard)
	case "corespersocket":
		return small(&g.cores)
	case "threadspercore":
		return small(&g.threads)
	case "realmemory":
		n.RealMemory, err = kv.mebibytes()
	case "tmpdisk":
		n.TmpDisk, err = kv.mebibytes()
	case "weight":
		var w int64
		w, err = kv.integer(0, maxInt32)
		n.Weight = int(w)
	case "feature", "features":
		n.Features = kv.list()
	case "gres":
		n.GRES, err = p.gres(kv)
	case "state":
		return p.nodeState(n, kv)
	case "reason":
		n.Reason = kv.value
	case "nodehostname", "nodeaddr", "bcastaddr", "port":
		// Addresses of slurmd: Berth identifies a node by its name only.
	default:
		p.warn(kv, "not supported for nodes; ignored")
	}
	return err
}

func (p *parser) nodeState(n *Node, kv pair) error {
	word, _, _ := strings.Cut(strings.ToUpper(kv.value), "+")
	switch word {
	case "UNKNOWN", "IDLE":
		n.State = ""
	case "CLOUD":
		n.State = StateCloud
	case "DOWN", "FAIL":
		n.State = "down"
	case "DRAIN", "DRAINED", "FAILING":
		n.State = "drain"
	case "FUTURE":
		n.State = "future"
	default:
		return kv.invalid("UNKNOWN, DOWN, DRAIN, FAIL, FUTURE or CLOUD")
	}
	return nil
}

// complete sets the processors of n, with missing values derived as slurmctld does. The
// error says that the given values contradict each other; n is valid even then.
func (g *geometry) complete(n *Node) error {
	boards := max(g.boards, 1)
	n.Sockets, n.CoresPerSocket, n.ThreadsPerCore = g.sockets, max(g.cores, 1), max(g.threads, 1)
	if n.Sockets == 0 && g.perBoard > 0 {
		n.Sockets = g.perBoard * boards
	}
	perSocket := n.CoresPerSocket * n.ThreadsPerCore
	if n.Sockets == 0 {
		n.Sockets = max(g.cpus/perSocket, 1)
	}
	threads := n.Sockets * perSocket
	switch g.cpus {
	case 0, threads:
		n.CPUs = threads
	case n.Sockets * n.CoresPerSocket: // one CPU per core
		n.CPUs, n.ThreadsPerCore = g.cpus, 1
	case n.Sockets: // one CPU per socket
		n.CPUs, n.CoresPerSocket, n.ThreadsPerCore = g.cpus, 1, 1
	default:
		n.CPUs = threads
		return errors.New("CPUs matches neither the sockets, cores nor threads; the number of threads is used")
	}
	return nil
}

// readDown applies the DownNodes lines.
func (p *parser) readDown() error {
	for _, all := range p.downLines {
		first := all[0]
		if isDefault(first.value) {
			p.downDefaults = append(p.downDefaults, all[1:]...)
			continue
		}
		names, err := p.existingNodes(first)
		if err != nil {
			return err
		}
		state := Node{State: "down"}
		for _, kv := range slices.Concat(p.downDefaults, all[1:]) {
			switch strings.ToLower(kv.key) {
			case "state":
				if err := p.nodeState(&state, kv); err != nil {
					return err
				}
			case "reason":
				state.Reason = kv.value
			default:
				p.warn(kv, "not supported for DownNodes; ignored")
			}
		}
		for _, name := range names {
			p.nodes[name].State, p.nodes[name].Reason = state.State, state.Reason
		}
	}
	return nil
}

// existingNodes expands a list of nodes; a node that is not defined is an error. Names of
// node sets are not expanded.
func (p *parser) existingNodes(kv pair) ([]string, error) {
	names, err := p.hosts(kv)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if p.nodes[name] == nil {
			return nil, kv.errorf("%s: there is no node %s", kv.key, name)
		}
	}
	return names, nil
}

// readSets parses the NodeSet lines.
func (p *parser) readSets() error {
	for _, all := range p.setLines {
		name := all[0].value
		if _, ok := p.sets[name]; ok {
			return all[0].errorf("node set %s is defined already", name)
		}
		var members []string
		for _, kv := range all[1:] {
			switch strings.ToLower(kv.key) {
			case "nodes":
				nodes, err := p.existingNodes(kv)
				if err != nil {
					return err
				}
				members = append(members, nodes...)
			case "feature":
				members = append(members, p.withFeature(kv.value)...)
			default:
				p.warn(kv, "not supported for node sets; ignored")
			}
		}
		p.sets[name] = members
	}
	return nil
}

func (p *parser) withFeature(feature string) []string {
	var all []string
	for _, name := range p.order {
		if slices.Contains(p.nodes[name].Features, feature) {
			all = append(all, name)
		}
	}
	return all
}
