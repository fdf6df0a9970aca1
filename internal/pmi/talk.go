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

// talk is the conversation with one task.
type talk struct {
	s    *Server
	rank uint32
	r    *bufio.Reader

	mu sync.Mutex // answers to a fence come from elsewhere
	w  io.Writer
}

func (t *talk) print(format string, args ...any) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, err := fmt.Fprintf(t.w, format, args...)
	return err
}

var errLong = errors.New("a line without end")

// line reads a line without its end.
func (t *talk) line() (string, error) {
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

// parseLine reads "cmd=put kvsname=K key=k value=v"; the value is the rest of
// the line.
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

// one speaks PMI-1.
func (t *talk) one() {
	for {
		line, err := t.line()
		if err != nil || line == "" {
			return
		}
		if strings.HasPrefix(line, "mcmd=") {
			if t.skip() != nil || t.print("cmd=spawn_result rc=-1 status=spawn_not_supported\n") != nil {
				return
			}
			continue
		}
		if !t.answer(parseLine(line)) {
			return
		}
	}
}

// skip reads to the end of a command of several lines.
func (t *talk) skip() error {
	for {
		line, err := t.line()
		if err != nil || line == "endcmd" {
			return err
		}
	}
}

// answer answers one line of PMI-1; false: the task says no more.
func (t *talk) answer(q map[string]string) bool {
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
		t.s.enter(t.rank, func() { t.print("cmd=barrier_out rc=0\n") }) //nolint:errcheck // its reader sees it
	case "finalize":
		t.print("cmd=finalize_ack rc=0\n") //nolint:errcheck // it is the last
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

// pair of PMI-2; their order counts in some clients.
type pair struct{ name, value string }

// two speaks PMI-2.
func (t *talk) two() {
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
		if !t.answerTwo(parsePairs(string(body))) {
			return
		}
	}
}

// parsePairs reads "cmd=kvs-put;key=k;value=v;"; a semicolon in a value is
// written twice.
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

// threadKey is the protocol's name of what tells a client's threads apart.
const threadKey = "thr" + "id"

// reply answers a command of PMI-2. The question's thread comes back.
func (t *talk) reply(q map[string]string, pairs ...pair) error {
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

var good = pair{"rc", "0"}

func bad(text string) []pair { return []pair{{"rc", "-1"}, {"errmsg", text}} }

// found answers a question for a value.
func (t *talk) found(q map[string]string, value string, ok bool) error {
	if !ok {
		return t.reply(q, pair{"found", "FALSE"}, good)
	}
	return t.reply(q, pair{"found", "TRUE"}, pair{"value", value}, good)
}

// answerTwo answers one message of PMI-2; false: the task says no more.
func (t *talk) answerTwo(q map[string]string) bool {
	var err error
	switch q["cmd"] {
	case "fullinit":
		err = t.reply(q, pair{"pmi-version", "2"}, pair{"pmi-subversion", "0"}, pair{"rank", strconv.Itoa(int(t.rank))},
			pair{"size", strconv.Itoa(int(t.s.Size))}, pair{"appnum", "0"}, pair{"debugged", "FALSE"},
			pair{"pmiverbose", "FALSE"}, good)
	case "job-getid":
		err = t.reply(q, pair{"jobid", t.s.Name}, good)
	case "kvs-put":
		if t.s.store(q["key"], q["value"]) {
			err = t.reply(q, good)
		} else {
			err = t.reply(q, bad("no room for the key")...)
		}
	case "kvs-get":
		v, ok := t.s.get(q["key"])
		err = t.found(q, v, ok)
	case "kvs-fence":
		t.s.enter(t.rank, func() { t.reply(q, good) }) //nolint:errcheck // its reader sees it
	case "info-getjobattr":
		v, ok := t.attribute(q["key"])
		err = t.found(q, v, ok)
	case "info-putnodeattr":
		if t.s.setNode(q["key"], q["value"]) {
			err = t.reply(q, good)
		} else {
			err = t.reply(q, bad("no room for the key")...)
		}
	case "info-getnodeattr":
		err = t.nodeAttribute(q)
	case "finalize":
		t.reply(q, good) //nolint:errcheck // it is the last
		return false
	case "abort":
		t.s.Abort(t.rank, q["msg"])
		return false
	default:
		err = t.reply(q, bad("not supported")...)
	}
	return err == nil
}

// attribute is one of the job.
func (t *talk) attribute(key string) (string, bool) {
	switch key {
	case "PMI_process_mapping":
		return t.s.get(key)
	case "universeSize":
		return strconv.Itoa(int(t.s.Size)), true
	}
	return "", false
}

func (t *talk) nodeAttribute(q map[string]string) error {
	if strings.EqualFold(q["wait"], "TRUE") || q["wait"] == "1" {
		t.s.whenNode(q["key"], func(v string) { t.found(q, v, true) }) //nolint:errcheck // its reader sees it
		return nil
	}
	t.s.mu.Lock()
	v, ok := t.s.node[q["key"]]
	t.s.mu.Unlock()
	return t.found(q, v, ok)
}
