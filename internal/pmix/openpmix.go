//go:build pmix

package pmix

/*
#cgo pkg-config: pmix
#include <stdlib.h>
#include "shim.h"
*/
import "C"

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/translate/env"
)

// Version returns the version of the library's headers.
func Version() string {
	return fmt.Sprintf("%d.%d.%d", C.PMIX_VERSION_MAJOR, C.PMIX_VERSION_MINOR, C.PMIX_VERSION_RELEASE)
}

// server is the library's server, of which a process has one. Its callbacks are
// called by a thread of the library.
type server struct {
	job        *step.PMIxJob
	localTasks []int32  // ranks on this node, ascending
	size       uint32   // tasks of the step
	nodeOf     []uint32 // by rank
	send       func(*step.Frame) error

	mu           sync.Mutex
	fences       map[string]callback  // by key
	rounds       map[string]int       // number of fences of the same processes so far
	sent         map[uint32]callback  // requests to other nodes, by id
	lastSent     uint32               // last id in sent
	received     map[uintptr]*request // requests of other nodes, by id
	lastReceived uintptr              // last id in received
}

// request is a request of another node for the data that a local task has put.
type request struct {
	step.Modex
	key   []byte // a key that the answer must contain; empty: none
	until time.Time
}

// A task may commit its data in several parts, and the library answers with the parts
// that exist, or with PMIX_ERR_NOT_FOUND if these are only for tasks of the same node.
// So a request whose answer lacks the requested key is repeated every retryInterval,
// for retryTime.
const (
	retryTime     = 10 * time.Second
	retryInterval = 50 * time.Millisecond
)

// callback is a function of the library that receives the answer to a request.
type callback struct{ fn, data unsafe.Pointer }

// call passes the answer to the library, which copies data.
func (r callback) call(status int32, data []byte) {
	C.berth_answer(r.fn, r.data, C.int(status), unsafe.Pointer(unsafe.SliceData(data)), C.size_t(len(data)))
}

// current is the server of the process, for the functions that the library calls.
var current *server

// open starts the library and registers the step. Frames for other nodes go to
// send.
func open(job *step.PMIxJob, send func(*step.Frame) error) (*server, error) {
	if job.Node < 0 || int(job.Node) >= len(job.Nodes) || len(job.Nodes[job.Node].Tasks) == 0 {
		return nil, fmt.Errorf("no node %d with tasks in the step", job.Node)
	}
	s := &server{
		job: job, localTasks: job.Nodes[job.Node].Tasks, send: send,
		fences: map[string]callback{}, rounds: map[string]int{},
		sent: map[uint32]callback{}, received: map[uintptr]*request{},
	}
	current = s
	name, host, dir := C.CString(job.Name), C.CString(job.Nodes[job.Node].Name), C.CString(job.Dir)
	defer C.free(unsafe.Pointer(name))
	defer C.free(unsafe.Pointer(host))
	defer C.free(unsafe.Pointer(dir))
	if rc := C.berth_open(name, C.uint32_t(job.Node), host, dir); rc != C.PMIX_SUCCESS {
		return nil, fmt.Errorf("PMIx_server_init: %w", statusError(rc))
	}
	return s, s.register(name)
}

// statusError returns the error of a status of the library.
func statusError(rc C.int) error {
	return errors.New(C.GoString(C.PMIx_Error_string(C.pmix_status_t(rc))))
}

// register registers the namespace and its local tasks with the library.
func (s *server) register(name *C.char) error {
	var names, ranks []string
	for _, n := range s.job.Nodes {
		names = append(names, n.Name)
		ranks = append(ranks, formatRanks(n.Tasks))
		s.size += uint32(len(n.Tasks))
	}
	s.nodeOf = make([]uint32, s.size)
	localRanks := make([]uint16, s.size)
	for i, n := range s.job.Nodes {
		for local, rank := range n.Tasks {
			if rank < 0 || uint32(rank) >= s.size {
				return fmt.Errorf("no task %d in the step", rank)
			}
			s.nodeOf[rank], localRanks[rank] = uint32(i), uint16(local)
		}
	}
	nodes, tasks := C.CString(strings.Join(names, ",")), C.CString(strings.Join(ranks, ";"))
	peers := C.CString(formatRanks(s.localTasks))
	defer C.free(unsafe.Pointer(nodes))
	defer C.free(unsafe.Pointer(tasks))
	defer C.free(unsafe.Pointer(peers))
	rc := C.berth_register(name, nodes, tasks, peers,
		C.uint32_t(s.size), (*C.uint32_t)(&s.nodeOf[0]), (*C.uint16_t)(&localRanks[0]),
		C.uint32_t(len(s.localTasks)), (*C.uint32_t)(unsafe.Pointer(&s.localTasks[0])))
	if rc != C.PMIX_SUCCESS {
		return fmt.Errorf("PMIx_server_register_nspace: %w", statusError(rc))
	}
	return nil
}

// formatRanks returns ranks as "0,1,3".
func formatRanks(ranks []int32) string {
	var b strings.Builder
	for i, r := range ranks {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(int(r)))
	}
	return b.String()
}

// environ returns the environment variables with which a local task finds the server.
func (s *server) environ(rank int32) ([]string, error) {
	name := C.CString(s.job.Name)
	defer C.free(unsafe.Pointer(name))
	var rc C.int
	first := C.berth_environ(name, C.uint32_t(rank), &rc)
	defer C.berth_free_environ(first)
	if rc != C.PMIX_SUCCESS {
		return nil, fmt.Errorf("PMIx_server_setup_fork: %w", statusError(rc))
	}
	var out []string
	for p := first; p != nil && *p != nil; p = (**C.char)(unsafe.Add(unsafe.Pointer(p), unsafe.Sizeof(p))) {
		out = append(out, C.GoString(*p))
	}
	return env.Merge(nil, out...), nil
}

// endFence ends a fence with the data of all its nodes.
func (s *server) endFence(c *step.Collective) {
	s.mu.Lock()
	r, ok := s.fences[c.Key]
	delete(s.fences, c.Key)
	s.mu.Unlock()
	if ok { // otherwise it is a fence of other nodes
		r.call(C.PMIX_SUCCESS, c.Data)
	}
}

// handleModex handles a request of another node, or the answer to one of this node.
func (s *server) handleModex(m *step.Modex) {
	if m.Answer {
		s.mu.Lock()
		r, ok := s.sent[m.ID]
		delete(s.sent, m.ID)
		s.mu.Unlock()
		if ok {
			r.call(m.Status, m.Data)
		}
		return
	}
	r := &request{Modex: *m, key: bytes.Clone(m.Data), until: time.Now().Add(retryTime)}
	r.Data = nil
	s.requestLocal(r)
}

// requestLocal requests from the library the data that a local task has put;
// receiveLocal receives them.
func (s *server) requestLocal(r *request) {
	s.mu.Lock()
	s.lastReceived++
	id := s.lastReceived
	s.received[id] = r
	s.mu.Unlock()
	name := C.CString(s.job.Name)
	defer C.free(unsafe.Pointer(name))
	if rc := C.berth_request_local(name, C.uint32_t(r.Of), C.uintptr_t(id)); rc != C.PMIX_SUCCESS {
		s.receiveLocal(id, int32(rc), nil)
	}
}

// receiveLocal answers a request of another node with the data of a local task, or
// repeats it.
func (s *server) receiveLocal(id uintptr, status int32, data []byte) {
	s.mu.Lock()
	r := s.received[id]
	delete(s.received, id)
	s.mu.Unlock()
	switch {
	case r == nil:
	case r.isIncomplete(status, data) && time.Now().Before(r.until):
		time.AfterFunc(retryInterval, func() { s.requestLocal(r) })
	default:
		r.Answer, r.Status, r.Data = true, status, data
		s.notify(r.Frame())
	}
}

// isIncomplete reports whether an answer may lack parts that the task commits later.
func (r *request) isIncomplete(status int32, data []byte) bool {
	return status == C.PMIX_ERR_NOT_FOUND || status == C.PMIX_SUCCESS && !bytes.Contains(data, r.key)
}

// notify sends a frame. It ignores errors: the connection to the agent is the only way
// to report them.
func (s *server) notify(f *step.Frame) { _ = s.send(f) }

// participants returns a key for the processes of a fence, and the number of their
// nodes. ok is false if some belong to another step.
func (s *server) participants(procs []C.pmix_proc_t) (key string, nodes uint32, ok bool) {
	on := map[uint32]bool{}
	var ranks []int32
	for i := range procs {
		switch rank := uint32(procs[i].rank); {
		case C.GoString(&procs[i].nspace[0]) != s.job.Name:
			return "", 0, false
		case rank == uint32(C.PMIX_RANK_WILDCARD):
			return "*", uint32(len(s.job.Nodes)), true
		case rank >= s.size:
			return "", 0, false
		default:
			on[s.nodeOf[rank]] = true
			ranks = append(ranks, int32(rank))
		}
	}
	slices.Sort(ranks)
	return formatRanks(ranks), uint32(len(on)), true
}

//export berthFence
func berthFence(procs *C.pmix_proc_t, n C.size_t, data *C.char, size C.size_t, fn, cbdata unsafe.Pointer) C.int {
	s := current
	key, nodes, ok := s.participants(unsafe.Slice(procs, int(n)))
	if !ok || size > step.MaxModex/2 {
		return C.PMIX_ERR_NOT_SUPPORTED
	}
	if len(key) > 1<<15 { // a long list of ranks
		key = fmt.Sprintf("%x", hash(key))
	}
	s.mu.Lock()
	s.rounds[key]++
	key += "#" + strconv.Itoa(s.rounds[key])
	s.fences[key] = callback{fn, cbdata}
	s.mu.Unlock()
	c := &step.Collective{
		Key: key, Parts: 1, Need: nodes, Data: unsafe.Slice((*byte)(unsafe.Pointer(data)), int(size)),
	}
	if s.send(c.Frame(step.FrameCollect)) != nil {
		return C.PMIX_ERROR
	}
	return C.PMIX_SUCCESS
}

//export berthModex
func berthModex(proc *C.pmix_proc_t, key *C.char, fn, cbdata unsafe.Pointer) C.int {
	s := current
	if C.GoString(&proc.nspace[0]) != s.job.Name || uint32(proc.rank) >= s.size {
		return C.PMIX_ERR_NOT_FOUND
	}
	s.mu.Lock()
	s.lastSent++
	id := s.lastSent
	s.sent[id] = callback{fn, cbdata}
	s.mu.Unlock()
	m := &step.Modex{ID: id, From: uint32(s.localTasks[0]), Of: uint32(proc.rank)}
	if key != nil {
		m.Data = []byte(C.GoString(key))
	}
	if s.send(m.Frame()) != nil {
		return C.PMIX_ERROR
	}
	return C.PMIX_SUCCESS
}

//export berthReceiveLocal
func berthReceiveLocal(status C.int, data *C.char, size C.size_t, id C.uintptr_t) {
	current.receiveLocal(uintptr(id), int32(status), unsafe.Slice((*byte)(unsafe.Pointer(data)), int(size)))
}

//export berthAbort
func berthAbort(rank C.uint32_t, status C.int, msg *C.char) {
	text := fmt.Sprintf("exit code %d", status)
	if msg != nil && *msg != 0 {
		text = C.GoString(msg)
	}
	current.notify(&step.Frame{Type: step.FrameAbort, Task: uint32(rank), Data: []byte(text)})
}
