// Package pmi is the server side of PMI-1 and PMI-2, the protocols with which the
// processes of an MPI program find each other. There is one Server for the tasks of
// a step on one node. The pairs that they put are exchanged with the other nodes at
// a fence, which the caller implements.
//
// Both protocols begin with the same line. PMI-1 continues with lines of pairs
// separated by blanks, PMI-2 with messages of a six-digit length and pairs that end
// with a semicolon.
package pmi

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"strings"
	"sync"
)

// Config describes the step to its Server.
type Config struct {
	Name  string   // of the key-value space; unique in the job
	Size  uint32   // tasks of the step
	Tasks []uint32 // on this node
	// TaskNode is the step node of each task.
	TaskNode []int32
	// Fence is called when every task of the node has reached a fence or has left,
	// with the pairs that they have put since the last fence; Release ends the
	// fence. waits is true if at least one task of the node waits. A fence at which
	// no task of any node waits must not be released.
	Fence func(put map[string]string, waits bool)
	// Abort is called when a task aborts the whole step.
	Abort func(rank uint32, text string)
}

// Server serves the tasks of one node. It is safe for concurrent use.
type Server struct {
	Config
	mapping string

	mu          sync.Mutex
	put         map[string]string         // pairs since the last fence
	kvs         map[string]string         // pairs of all tasks as of the last fence, and put
	node        map[string]string         // attributes of the node
	waiting     map[uint32]func()         // tasks at the fence, and the functions that release them
	left        map[uint32]bool           // tasks that participate in no further fence
	called      bool                      // Fence was called, and Release was not
	subscribers map[string][]func(string) // requests that wait for an attribute of the node
}

// Limits that PMI-1 reports to its clients.
const (
	maxName  = 256
	maxKey   = 64
	maxValue = 1024
)

// Limits of the memory that tasks can use. They are above those of the protocols.
const (
	maxStoredKey = 4 * maxKey
	// maxMessage is more than the six digits of a length in PMI-2 can express.
	maxMessage = 1 << 20
	// maxPairs bounds the pairs, and the attributes, that are stored on a node.
	maxPairs = 1 << 18
)

// New returns a Server for the step.
func New(c Config) *Server {
	return &Server{
		Config: c, mapping: Mapping(c.TaskNode),
		put: map[string]string{}, kvs: map[string]string{}, node: map[string]string{},
		waiting: map[uint32]func(){}, left: map[uint32]bool{}, subscribers: map[string][]func(string){},
	}
}

// Serve answers one task until it finalizes or closes its end of conn. It closes
// conn.
func (s *Server) Serve(rank uint32, conn io.ReadWriteCloser) {
	defer conn.Close()
	defer s.Leave(rank)
	t := &session{s: s, rank: rank, r: bufio.NewReaderSize(conn, 4096), w: conn}
	line, err := t.line()
	if err != nil {
		return
	}
	first := parseLine(line)
	if first["cmd"] != "init" {
		return
	}
	version := "1"
	if first["pmi_version"] == "2" {
		version = "2"
	}
	subversion := map[string]string{"1": "1", "2": "0"}[version]
	if t.print("cmd=response_to_init pmi_version=%s pmi_subversion=%s rc=0\n", version, subversion) != nil {
		return
	}
	if version == "2" {
		t.serve2()
		return
	}
	t.serve1()
}

// Leave removes a task from all further fences. Serve calls it; the caller does so
// for a task that could not be started.
func (s *Server) Leave(rank uint32) {
	s.mu.Lock()
	s.left[rank] = true
	delete(s.waiting, rank)
	call := s.complete()
	s.mu.Unlock()
	if call != nil {
		call()
	}
}

// enter makes a task wait at the fence. done is called when the fence has ended.
func (s *Server) enter(rank uint32, done func()) {
	s.mu.Lock()
	s.waiting[rank] = done
	call := s.complete()
	s.mu.Unlock()
	if call != nil {
		call()
	}
}

// complete returns the call of Fence if every task of the node has reached the fence
// or left. The caller holds s.mu, and makes the call without it.
func (s *Server) complete() func() {
	if s.called {
		return nil
	}
	for _, rank := range s.Tasks {
		if s.waiting[rank] == nil && !s.left[rank] {
			return nil
		}
	}
	s.called = true
	put, waits := s.put, len(s.waiting) > 0
	s.put = map[string]string{}
	return func() { s.Fence(put, waits) }
}

// Release ends the fence with the pairs that the tasks of all nodes have put.
func (s *Server) Release(all map[string]string) {
	s.mu.Lock()
	maps.Copy(s.kvs, all)
	waiting := s.waiting
	s.waiting = map[uint32]func(){}
	s.called = false
	// If every task has left, the fences of other nodes still need an answer.
	var call func()
	if len(s.left) >= len(s.Tasks) {
		call = s.complete()
	}
	s.mu.Unlock()
	for _, done := range waiting {
		done()
	}
	if call != nil {
		call()
	}
}

// store stores a pair, and returns false if it exceeds a limit.
func (s *Server) store(key, value string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if key == "" || len(key) > maxStoredKey || len(value) > maxMessage || len(s.kvs) >= maxPairs {
		return false
	}
	s.put[key], s.kvs[key] = value, value
	return true
}

// get returns the value of a key: of all tasks as of the last fence, of those of the
// node as of now.
func (s *Server) get(key string) (string, bool) {
	if key == "PMI_process_mapping" {
		return s.mapping, s.mapping != ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.kvs[key]
	return v, ok
}

// setNode stores an attribute of the node, and answers the requests that wait for
// it. It returns false if there are too many attributes.
func (s *Server) setNode(key, value string) bool {
	s.mu.Lock()
	if len(s.node) >= maxPairs {
		s.mu.Unlock()
		return false
	}
	s.node[key] = value
	waiting := s.subscribers[key]
	delete(s.subscribers, key)
	s.mu.Unlock()
	for _, answer := range waiting {
		answer(value)
	}
	return true
}

// getNode returns an attribute of the node.
func (s *Server) getNode(key string) (value string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	value, ok = s.node[key]
	return value, ok
}

// awaitNode calls answer with an attribute of the node as soon as it is stored.
func (s *Server) awaitNode(key string, answer func(value string)) {
	s.mu.Lock()
	v, ok := s.node[key]
	if !ok {
		s.subscribers[key] = append(s.subscribers[key], answer)
	}
	s.mu.Unlock()
	if ok {
		answer(v)
	}
}

// maxMapping is the maximum length of a value in PMI-1: its buffer has a zero at the
// end.
const maxMapping = maxValue - 1

// Mapping returns the nodes of all ranks in the form of PMI_process_mapping: blocks
// of (first node, number of nodes, ranks on each). It returns "" if that is too long
// for a value of PMI-1; MPI libraries then compare host names.
func Mapping(node []int32) string {
	type block struct{ first, nodes, each int }
	var blocks []block
	for i := 0; i < len(node); {
		j := i
		for j < len(node) && node[j] == node[i] {
			j++
		}
		run := block{int(node[i]), 1, j - i}
		n := len(blocks)
		if n > 0 && blocks[n-1].each == run.each && blocks[n-1].first+blocks[n-1].nodes == run.first {
			blocks[n-1].nodes++
		} else {
			blocks = append(blocks, run)
		}
		i = j
	}
	var b strings.Builder
	b.WriteString("(vector")
	for _, x := range blocks {
		fmt.Fprintf(&b, ",(%d,%d,%d)", x.first, x.nodes, x.each)
	}
	b.WriteByte(')')
	if b.Len() > maxMapping {
		return ""
	}
	return b.String()
}
