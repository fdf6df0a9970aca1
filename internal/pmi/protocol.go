package pmi

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
)

// session is the connection of one task.
type session struct {
	s    *Server
	rank uint32
	r    *bufio.Reader

	mu sync.Mutex // guards w: another goroutine reports the end of a fence
	w  io.Writer
}

// print sends an answer. If that fails, the next read from the connection fails too.
func (t *session) print(format string, args ...any) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, err := fmt.Fprintf(t.w, format, args...)
	return err
}

var errLong = errors.New("line too long")

// line reads a line and returns it without its end.
func (t *session) line() (string, error) {
	var b []byte
	for {
		part, err := t.r.ReadSlice('\n')
		b = append(b, part...)
		switch {
		case err == nil:
			return strings.TrimRight(string(b), "\r\n"), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return "", err
		case len(b) > maxMessage:
			return "", errLong
		}
	}
}

// parseLine parses "cmd=put kvsname=K key=k value=v". The value extends to the end
// of the line.
func parseLine(line string) map[string]string {
	pairs := map[string]string{}
	for line != "" {
		name, rest, ok := strings.Cut(strings.TrimLeft(line, " "), "=")
		if !ok {
			break
		}
		if name == "value" {
			pairs[name] = rest
			break
		}
		pairs[name], line, _ = strings.Cut(rest, " ")
	}
	return pairs
}

// serve1 serves PMI-1.
func (t *session) serve1() {
	for {
		line, err := t.line()
		if err != nil || line == "" {
			return
		}
		if strings.HasPrefix(line, "mcmd=") {
			if t.skipCommand() != nil || t.print("cmd=spawn_result rc=-1 status=spawn_not_supported\n") != nil {
				return
			}
			continue
		}
		if !t.answer1(parseLine(line)) {
			return
		}
	}
}

// skipCommand reads to the end of a command of several lines.
func (t *session) skipCommand() error {
	for {
		line, err := t.line()
		if err != nil || line == "endcmd" {
			return err
		}
	}
}

// answer1 answers a command of PMI-1. It returns false after the last command, and if
// it could not answer.
func (t *session) answer1(q map[string]string) bool {
	var err error
	switch q["cmd"] {
	case "get_maxes":
		err = t.print("cmd=maxes kvsname_max=%d keylen_max=%d vallen_max=%d\n", maxName, maxKey, maxValue)
	case "get_appnum":
		err = t.print("cmd=appnum appnum=0\n")
	case "get_my_kvsname":
		err = t.print("cmd=my_kvsname kvsname=%s\n", t.s.Name)
	case "get_universe_size":
		err = t.print("cmd=universe_size size=%d\n", t.s.Size)
	case "get_ranks2hosts":
		err = t.print("cmd=ranks2hosts rc=-1\n")
	case "put":
		if t.s.store(q["key"], q["value"]) {
			err = t.print("cmd=put_result rc=0 msg=success\n")
		} else {
			err = t.print("cmd=put_result rc=-1 msg=no_room\n")
		}
	case "get":
		if v, ok := t.s.get(q["key"]); ok {
			err = t.print("cmd=get_result rc=0 msg=success value=%s\n", v)
		} else {
			err = t.print("cmd=get_result rc=-1 msg=key_%s_not_found value=unknown\n", q["key"])
		}
	case "barrier_in":
		t.s.enter(t.rank, func() { _ = t.print("cmd=barrier_out rc=0\n") })
	case "finalize":
		_ = t.print("cmd=finalize_ack rc=0\n") // it is the last answer
		return false
	case "abort":
		t.s.Abort(t.rank, "exit code "+q["exitcode"])
		return false
	case "publish_name", "unpublish_name", "lookup_name":
		err = t.print("cmd=%s info=fail rc=-1 msg=not_supported\n", strings.Replace(q["cmd"], "_name", "_result", 1))
	default:
		err = t.print("cmd=%s rc=-1 msg=unknown_command\n", q["cmd"])
	}
	return err == nil
}

// pair is a pair of PMI-2. Some clients depend on the order of the pairs in an answer.
type pair struct{ name, value string }

// serve2 serves PMI-2.
func (t *session) serve2() {
	head := make([]byte, 6)
	for {
		if _, err := io.ReadFull(t.r, head); err != nil {
			return
		}
		n, err := strconv.Atoi(strings.TrimSpace(string(head)))
		if err != nil || n < 0 || n > maxMessage {
			return
		}
		body := make([]byte, n)
		if _, err := io.ReadFull(t.r, body); err != nil {
			return
		}
		if !t.answer2(parsePairs(string(body))) {
			return
		}
	}
}

// parsePairs parses "cmd=kvs-put;key=k;value=v;". A semicolon in a value is doubled.
func parsePairs(body string) map[string]string {
	pairs := map[string]string{}
	for body != "" {
		name, rest, ok := strings.Cut(body, "=")
		if !ok {
			break
		}
		var v strings.Builder
		i := 0
		for ; i < len(rest); i++ {
			if rest[i] == ';' {
				if i+1 < len(rest) && rest[i+1] == ';' {
					i++
				} else {
					break
				}
			}
			v.WriteByte(rest[i])
		}
		pairs[name] = v.String()
		body = ""
		if i < len(rest) {
			body = rest[i+1:]
		}
	}
	return pairs
}

// threadKey is the key by which the protocol identifies a client's threads.
const threadKey = "thr" + "id"

// reply answers a command of PMI-2, for the thread that sent it.
func (t *session) reply(q map[string]string, pairs ...pair) error {
	var b strings.Builder
	b.WriteString("cmd=" + q["cmd"] + "-response;")
	if id, ok := q[threadKey]; ok {
		b.WriteString(threadKey + "=" + id + ";")
	}
	for _, p := range pairs {
		b.WriteString(p.name + "=" + strings.ReplaceAll(p.value, ";", ";;") + ";")
	}
	return t.print("%6d%s", b.Len(), b.String())
}

var success = pair{"rc", "0"}

// failure returns the pairs of an error.
func failure(text string) []pair { return []pair{{"rc", "-1"}, {"errmsg", text}} }

// found answers a request for a value, which does not exist if ok is false.
func (t *session) found(q map[string]string, value string, ok bool) error {
	if !ok {
		return t.reply(q, pair{"found", "FALSE"}, success)
	}
	return t.reply(q, pair{"found", "TRUE"}, pair{"value", value}, success)
}

// answer2 answers a message of PMI-2. It returns false after the last one, and if it
// could not answer.
func (t *session) answer2(q map[string]string) bool {
	var err error
	switch q["cmd"] {
	case "fullinit":
		err = t.reply(q, pair{"pmi-version", "2"}, pair{"pmi-subversion", "0"}, pair{"rank", strconv.Itoa(int(t.rank))},
			pair{"size", strconv.Itoa(int(t.s.Size))}, pair{"appnum", "0"}, pair{"debugged", "FALSE"},
			pair{"pmiverbose", "FALSE"}, success)
	case "job-getid":
		err = t.reply(q, pair{"jobid", t.s.Name}, success)
	case "kvs-put":
		if t.s.store(q["key"], q["value"]) {
			err = t.reply(q, success)
		} else {
			err = t.reply(q, failure("no room for the key")...)
		}
	case "kvs-get":
		v, ok := t.s.get(q["key"])
		err = t.found(q, v, ok)
	case "kvs-fence":
		t.s.enter(t.rank, func() { _ = t.reply(q, success) })
	case "info-getjobattr":
		v, ok := t.attribute(q["key"])
		err = t.found(q, v, ok)
	case "info-putnodeattr":
		if t.s.setNode(q["key"], q["value"]) {
			err = t.reply(q, success)
		} else {
			err = t.reply(q, failure("no room for the key")...)
		}
	case "info-getnodeattr":
		err = t.nodeAttribute(q)
	case "finalize":
		_ = t.reply(q, success) // it is the last answer
		return false
	case "abort":
		t.s.Abort(t.rank, q["msg"])
		return false
	default:
		err = t.reply(q, failure("not supported")...)
	}
	return err == nil
}

// attribute returns an attribute of the job.
func (t *session) attribute(key string) (string, bool) {
	switch key {
	case "PMI_process_mapping":
		return t.s.get(key)
	case "universeSize":
		return strconv.Itoa(int(t.s.Size)), true
	}
	return "", false
}

// nodeAttribute answers a request for an attribute of the node, at once or when the
// attribute exists.
func (t *session) nodeAttribute(q map[string]string) error {
	if strings.EqualFold(q["wait"], "TRUE") || q["wait"] == "1" {
		t.s.awaitNode(q["key"], func(v string) { _ = t.found(q, v, true) })
		return nil
	}
	v, ok := t.s.getNode(q["key"])
	return t.found(q, v, ok)
}
