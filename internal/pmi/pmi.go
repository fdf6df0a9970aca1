// Package pmi is the server's side of PMI-1 and PMI-2, by which the processes
// of an MPI program find each other: one Server for the tasks of a step on one
// node. What they put is exchanged with the other nodes at a fence, which is
// the caller's to carry out.
//
// Both protocols begin alike, with a line. PMI-1 goes on with lines of
// blank-separated pairs; PMI-2 with messages of a six-digit length and pairs
// that end with a semicolon.
package pmi

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"strings"
	"sync"
)

// Config says what the Server knows of its step.
type Config struct {
	Name  string   // of the key-value space: unique among those of the job
	Size  uint32   // tasks of the step
	Tasks []uint32 // those here
	// TaskNode is the step node of each task.
	TaskNode []int32
	// Fence is called when every task here waits at a fence or takes part in
	// none any more, with what they have put since the last; Release ends it.
	// waits: there are some that wait. A fence at which nobody waits on any
	// node must not be released.
	Fence func(put map[string]string, waits bool)
	// Abort is called when a task wants the whole step to end.
	Abort func(rank uint32, text string)
}

// Server is safe for concurrent use.
type Server struct {
	Config
	mapping string

	mu      sync.Mutex
	put     map[string]string         // since the last fence
	kvs     map[string]string         // of all tasks, as of the last fence, and put
	node    map[string]string         // attributes of the node
	waiting map[uint32]func()         // the tasks at the fence, and how to let them go
	left    map[uint32]bool           // they take part in no fence any more
	called  bool                      // Fence was called, and Release not yet
	asked   map[string][]func(string) // who waits for an attribute of the node
}

// Bounds of what a task may say (PMI-1 tells them to its client).
const (
	maxName  = 256
	maxKey   = 64
	maxValue = 1024
	// maxMessage is far above what six digits of length can say.
	maxMessage = 1 << 20
	// maxPairs bounds what a step can make its agents keep on one node.
	maxPairs = 1 << 18
)

// New makes a Server.
func New(c Config) *Server {
	return &Server{
		Config: c, mapping: Mapping(c.TaskNode), put: map[string]string{}, kvs: map[string]string{}, node: map[string]string{},
		waiting: map[uint32]func(){}, left: map[uint32]bool{}, asked: map[string][]func(string){},
	}
}

// Serve answers one task until it is done or its end of conn is closed; it
// closes conn.
func (s *Server) Serve(rank uint32, conn io.ReadWriteCloser) {
	defer conn.Close()
	defer s.leave(rank)
	t := &talk{s: s, rank: rank, r: bufio.NewReaderSize(conn, 4096), w: conn}
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
	sub := map[string]string{"1": "1", "2": "0"}[version]
	if t.print("cmd=response_to_init pmi_version=%s pmi_subversion=%s rc=0\n", version, sub) != nil {
		return
	}
	if version == "2" {
		t.two()
		return
	}
	t.one()
}

// Left says that the task will never come: it could not be started.
func (s *Server) Left(rank uint32) { s.leave(rank) }

// leave takes the task out of all fences to come.
func (s *Server) leave(rank uint32) {
	s.mu.Lock()
	s.left[rank] = true
	delete(s.waiting, rank)
	call := s.complete()
	s.mu.Unlock()
	if call != nil {
		call()
	}
}

// enter has the task wait at the fence; done is called when it is over.
func (s *Server) enter(rank uint32, done func()) {
	s.mu.Lock()
	s.waiting[rank] = done
	call := s.complete()
	s.mu.Unlock()
	if call != nil {
		call()
	}
}

// complete is the call to make when every task here is at the fence or gone.
// s.mu is held.
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

// Release ends the fence with what all nodes have put.
func (s *Server) Release(all map[string]string) {
	s.mu.Lock()
	maps.Copy(s.kvs, all)
	waiting := s.waiting
	s.waiting = map[uint32]func(){}
	s.called = false
	// Where every task is gone, the others' fences need an answer still.
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

func (s *Server) store(key, value string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if key == "" || len(key) > maxKey*4 || len(value) > maxMessage || len(s.kvs) >= maxPairs {
		return false
	}
	s.put[key], s.kvs[key] = value, value
	return true
}

func (s *Server) get(key string) (string, bool) {
	if key == "PMI_process_mapping" {
		return s.mapping, s.mapping != ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.kvs[key]
	return v, ok
}

// setNode puts an attribute of the node, and answers who waited for it.
func (s *Server) setNode(key, value string) bool {
	s.mu.Lock()
	if len(s.node) >= maxPairs {
		s.mu.Unlock()
		return false
	}
	s.node[key] = value
	asked := s.asked[key]
	delete(s.asked, key)
	s.mu.Unlock()
	for _, answer := range asked {
		answer(value)
	}
	return true
}

// whenNode calls answer with the attribute, now or when there is one.
func (s *Server) whenNode(key string, answer func(value string)) {
	s.mu.Lock()
	v, ok := s.node[key]
	if !ok {
		s.asked[key] = append(s.asked[key], answer)
	}
	s.mu.Unlock()
	if ok {
		answer(v)
	}
}

// maxMapping is the longest value that PMI-1 can carry.
const maxMapping = maxValue - 1

// Mapping writes which node each rank is on, as PMI_process_mapping has it:
// blocks of (first node, nodes, ranks on each). It is empty where that would
// be too long, and then MPI libraries compare host names.
func Mapping(node []int32) string {
	type block struct{ first, nodes, each int }
	var blocks []block
	for i := 0; i < len(node); {
		j := i
		for j < len(node) && node[j] == node[i] {
			j++
		}
		run := block{int(node[i]), 1, j - i}
		if n := len(blocks); n > 0 && blocks[n-1].each == run.each && blocks[n-1].first+blocks[n-1].nodes == run.first {
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
