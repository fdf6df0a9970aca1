package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/internal/eventually"
)

// restServer is a slurmrestd of alice's.
type restServer struct {
	s      *shared
	tcp    string // its address
	socket string
}

// rest checks slurmrestd with requests of its own user, of users with tokens, and of others.
func (s *shared) rest(t *testing.T) {
	r := s.startREST(t)
	id := s.run(t, s.alice, "sbatch", "--parsable", "-o", "/dev/null", "-N1", "-n2", "--wrap", "srun sleep 600")
	defer s.run(t, s.alice, "scancel", id)
	eventually.Holds(t, "the job runs", func() bool {
		return s.run(t, s.alice, "squeue", "-h", "-j", id, "-o", "%T") == "RUNNING"
	})
	t.Run("members", func(t *testing.T) { r.members(t) })
	t.Run("submissions", func(t *testing.T) { r.submissions(t) })
	t.Run("changes", func(t *testing.T) { r.changes(t, id) })
	t.Run("attacks", func(t *testing.T) { r.attacks(t, id) })
	t.Run("later versions", func(t *testing.T) { r.later(t, id) })
	t.Run("inetd", func(t *testing.T) { r.inetd(t) })
}

// startREST starts slurmrestd as alice.
func (s *shared) startREST(t *testing.T) *restServer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &restServer{s: s, tcp: l.Addr().String(), socket: filepath.Join(s.alice.home, "rest.sock")}
	l.Close()
	line := s.alice.command(s.bin, "slurmrestd", "unix:"+r.socket, r.tcp)
	cmd := exec.Command(line[0], line[1:]...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("pkill", "--parent", fmt.Sprint(cmd.Process.Pid)).CombinedOutput(); err != nil {
			t.Errorf("pkill: %v %s", err, out)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("slurmrestd: %v %s", err, errs.String())
		}
		if _, err := os.Stat(r.socket); err == nil {
			t.Error("slurmrestd has left its socket")
		}
	})
	eventually.Holds(t, "slurmrestd listens", func() bool {
		c, err := net.Dial("tcp", r.tcp)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	return r
}

// token returns a token that the user requests.
func (r *restServer) token(t *testing.T, a account) string {
	t.Helper()
	token, ok := strings.CutPrefix(r.s.run(t, a, "scontrol", "token", "lifespan=600"), "SLURM_JWT=")
	if !ok {
		t.Fatal("scontrol token prints no SLURM_JWT=")
	}
	return token
}

// send sends a request over TCP with the headers, each a name and a value.
func (r *restServer) send(t *testing.T, method, path, body string, headers ...string) (code int, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), eventually.Timeout)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, method, "http://"+r.tcp+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		q.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}

// as returns a function that sends requests as the user.
func (r *restServer) as(t *testing.T, a account) func(method, path, body string) (int, string) {
	t.Helper()
	token := r.token(t, a)
	return func(method, path, body string) (int, string) {
		t.Helper()
		return r.send(t, method, path, body, "X-SLURM-USER-NAME", a.name, "X-SLURM-USER-TOKEN", token)
	}
}

// memberDocuments are the paths of the documents whose members are recorded.
var memberDocuments = map[string]string{
	"ping": "/slurm/v0.0.38/ping", "diag": "/slurm/v0.0.38/diag", "jobs": "/slurm/v0.0.38/jobs",
	"nodes": "/slurm/v0.0.38/nodes", "partitions": "/slurm/v0.0.38/partitions",
	"licenses": "/slurm/v0.0.38/licenses", "reservations": "/slurm/v0.0.38/reservations",
	"db-jobs": "/slurmdb/v0.0.38/jobs", "db-tres": "/slurmdb/v0.0.38/tres", "db-qos": "/slurmdb/v0.0.38/qos",
	"db-associations": "/slurmdb/v0.0.38/associations", "db-users": "/slurmdb/v0.0.38/users",
	"db-accounts": "/slurmdb/v0.0.38/accounts", "db-clusters": "/slurmdb/v0.0.38/clusters",
	"db-config": "/slurmdb/v0.0.38/config",
}

// members compares the members of each document, and their types, with those of Slurm's.
// Records have signals only if a signal has ended the job.
func (r *restServer) members(t *testing.T) {
	r.s.root(t, "scontrol", "create", "reservation", "reservationname=r1", "starttime=2090-01-01T00:00:00", "duration=60",
		"nodes=n4", "users=root", "flags=maint")
	defer r.s.root(t, "scontrol", "delete", "reservation=r1")
	alice := r.as(t, r.s.alice)
	for name, path := range memberDocuments {
		code, text := alice(http.MethodGet, path, "")
		var doc any
		if err := json.Unmarshal([]byte(text), &doc); err != nil || code != http.StatusOK {
			t.Errorf("%s: %d %v %.200s", path, code, err, text)
			continue
		}
		got := map[string][]string{}
		collectMembers(doc, "", got)
		want := readMembers(t, "members/"+name)
		for member, types := range got {
			if recorded := want[member]; recorded == nil && !coveredBy(member, want) {
				t.Errorf("%s: Slurm's has no member %s", path, member)
			} else if recorded != nil && !compatible(types, recorded) {
				t.Errorf("%s: %s is %s, Slurm's %s", path, member, types, recorded)
			}
		}
		for member := range want {
			if got[member] == nil && !coveredBy(member, got) && !strings.Contains(member, ".signal.") {
				t.Errorf("%s: there is no %s", path, member)
			}
		}
	}
}

// collectMembers adds the members of a document to found: their paths, and the types of
// their values.
func collectMembers(v any, path string, found map[string][]string) {
	add := func(kind string) {
		if !slices.Contains(found[path], kind) {
			found[path] = append(found[path], kind)
		}
	}
	switch x := v.(type) {
	case map[string]any:
		if len(x) == 0 {
			add("object")
		}
		for name, member := range x {
			if strings.Trim(name, "0123456789") == "" {
				name = "N"
			}
			collectMembers(member, strings.TrimPrefix(path+"."+name, "."), found)
		}
	case []any:
		add("array")
		for _, item := range x {
			collectMembers(item, path+"[]", found)
		}
	case string:
		add("string")
	case float64:
		add("number")
	case bool:
		add("boolean")
	case nil:
		add("null")
	}
}

func readMembers(t *testing.T, name string) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("testdata/rest/" + name + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	members := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		member, types, _ := strings.Cut(strings.TrimSpace(line), ": ")
		members[member] = strings.Fields(strings.ReplaceAll(types, "integer", "number"))
	}
	return members
}

// compatible reports whether two lists of types have one in common. A value that is null in
// one of the documents has no other type there.
func compatible(a, b []string) bool {
	return slices.Contains(a, "null") || slices.Contains(b, "null") ||
		slices.ContainsFunc(a, func(kind string) bool { return slices.Contains(b, kind) })
}

// coveredBy reports whether the member is inside of one that is empty or null in the other
// document, or of one that a job has only while it has nodes.
func coveredBy(member string, other map[string][]string) bool {
	for i := len(member) - 1; i > 0; i-- {
		if member[i] != '.' && member[i] != '[' {
			continue
		}
		types := other[member[:i]]
		if slices.Contains(types, "array") && other[member[:i]+"[]"] == nil && !hasInside(other, member[:i]+"[].") ||
			slices.Contains(types, "null") || slices.Contains(types, "object") {
			return true
		}
	}
	return false
}

func hasInside(members map[string][]string, prefix string) bool {
	for member := range members {
		if strings.HasPrefix(member, prefix) {
			return true
		}
	}
	return false
}

// submissions compares the responses to submissions with those of Slurm.
func (r *restServer) submissions(t *testing.T) {
	data, err := os.ReadFile("testdata/rest/submissions.txt")
	if err != nil {
		t.Fatal(err)
	}
	alice := r.as(t, r.s.alice)
	lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")[2:]
	for i := 0; i+1 < len(lines); i += 2 {
		status, list, _ := strings.Cut(lines[i+1], " ")
		code, text := alice(http.MethodPost, "/slurm/v0.0.38/job/submit", lines[i])
		var got struct {
			Errors []any
			JobID  int64 `json:"job_id"`
		}
		var want []any
		if err := json.Unmarshal([]byte(list), &want); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(text), &got); err != nil || fmt.Sprint(code) != status ||
			!reflect.DeepEqual(got.Errors, want) || (got.JobID > 0) != (code == http.StatusOK) {
			t.Errorf("%s: %d %v\n%s\nwant %s", lines[i], code, err, text, lines[i+1])
		}
	}
	if code, text := alice(http.MethodPost, "/slurm/v0.0.38/job/submit", "no json"); code != http.StatusBadRequest ||
		text != "Unable to parse query." {
		t.Errorf("no JSON: %d %s", code, text)
	}
	out := filepath.Join(r.s.alice.home, "rest.out")
	code, text := alice(http.MethodPost, "/slurm/v0.0.38/job/submit", fmt.Sprintf(
		`{"script":"#!/bin/sh\n#SBATCH -n3\necho $SLURM_NTASKS $GREETING $(id -un)\n","job":{"tasks":2,"time_limit":5,
			"current_working_directory":%q,"environment":{"GREETING":"hello","PATH":"/usr/bin:/bin"},"standard_output":"rest.out"}}`,
		r.s.alice.home))
	if code != http.StatusOK {
		t.Fatalf("%d %s", code, text)
	}
	want := "2 hello " + r.s.alice.name + "\n"
	eventually.Holds(t, "the job has run", func() bool {
		got, _ := os.ReadFile(out) // not there yet
		return string(got) == want
	})
}

// changes updates, signals and cancels jobs.
func (r *restServer) changes(t *testing.T, running string) {
	s := r.s
	held := s.run(t, s.alice, "sbatch", "--parsable", "--hold", "--wrap", "true")
	alice := r.as(t, s.alice)
	const jobs = "/slurm/v0.0.38/job/"
	for _, tt := range []struct {
		method, path, body string
		code               int
		errors             string // a part of the response
	}{
		{http.MethodPost, held, `{"comment":"hello","time_limit":10,"name":"new","nice":5}`, 200, `"errors": []`},
		{http.MethodPost, held, `{"partition":"nope"}`, 500, `"error": "Invalid partition name specified"`},
		{http.MethodPost, held, `{"nope":1}`, 400, `"description": "Unknown key \"nope\""`},
		{http.MethodPost, "999999", `{"comment":"x"}`, 500, `"error_number": 2017`},
		{http.MethodGet, "999999", "", 500, `"description": "Unable to find JobId=999999"`},
		{http.MethodGet, "abc", "", 400, `"error_number": 9002`},
		{http.MethodDelete, "999999", "", 500, "unable to kill JobId=999999 with signal 9: Invalid job id specified"},
		{http.MethodDelete, running + "?signal=nope", "", 400, `"source": "HTTP request: signal"`},
		{http.MethodDelete, running + "?signal=CONT", "", 200, `"errors": []`},
		{http.MethodPut, running, "", 405, ""},
	} {
		code, text := alice(tt.method, jobs+tt.path, tt.body)
		if code != tt.code || !strings.Contains(text, tt.errors) {
			t.Errorf("%s %s %s: %d %s", tt.method, tt.path, tt.body, code, text)
		}
	}
	if got := s.run(t, s.alice, "squeue", "-h", "-j", held, "-o", "%j %k %l %T"); got != "new hello 10:00 PENDING" {
		t.Errorf("the changed job is %q", got)
	}
	for range 2 { // as in Slurm, it is no error that the job has been cancelled
		if code, text := alice(http.MethodDelete, jobs+held, ""); code != http.StatusOK {
			t.Errorf("cancel: %d %s", code, text)
		}
	}
	if code, _ := alice(http.MethodGet, "/slurm/v0.0.38//jobs/", ""); code != http.StatusOK {
		t.Errorf("a path with more slashes: %d", code)
	}
	if code, _ := alice(http.MethodGet, "/slurm/v0.0.38/jobs?update_time=9999999999", ""); code != http.StatusNotModified {
		t.Errorf("jobs since a time in the future: %d", code)
	}
	code, text := alice(http.MethodGet, "/slurmdb/v0.0.38/jobs?reason=x", "")
	if code != http.StatusBadRequest || !strings.Contains(text, "not supported") {
		t.Errorf("a condition that is not supported: %d %s", code, text)
	}
}

// attacks: nobody acts as another user.
func (r *restServer) attacks(t *testing.T, job string) {
	s := r.s
	bob := r.token(t, s.bob)
	const path = "/slurm/v0.0.38/jobs"
	for name, headers := range map[string][]string{
		"no token":                     nil,
		"a name alone":                 {"X-SLURM-USER-NAME", s.alice.name},
		"bob's token and alice's name": {"X-SLURM-USER-NAME", s.alice.name, "X-SLURM-USER-TOKEN", bob},
		"bob's token and root's name":  {"X-SLURM-USER-NAME", "root", "X-SLURM-USER-TOKEN", bob},
		"a changed token":              {"X-SLURM-USER-TOKEN", bob[:len(bob)-4] + "AAAA"},
		"no JWT":                       {"Authorization", "Bearer x"},
		"basic authentication":         {"Authorization", "Basic cm9vdDpyb290"},
		"headers of a proxy":           {"X-Remote-User", "root", "X-Remote-Group", "system:masters"},
	} {
		if code, text := r.send(t, http.MethodGet, path, "", headers...); code != http.StatusUnauthorized ||
			text != "Authentication failure" {
			t.Errorf("%s: %d %.200s", name, code, text)
		}
	}
	for _, body := range []struct{ method, path, body string }{
		{http.MethodDelete, "/slurm/v0.0.38/job/" + job, ""},
		{http.MethodDelete, "/slurm/v0.0.38/job/" + job + "?signal=USR1", ""},
		{http.MethodPost, "/slurm/v0.0.38/job/" + job, `{"time_limit":1}`},
		{http.MethodPost, "/slurmdb/v0.0.38/accounts", `{"accounts":[{"name":"mine","coordinators":[{"name":"` + s.bob.name + `"}]}]}`},
		{http.MethodPost, "/slurmdb/v0.0.38/users", `{"users":[{"name":"` + s.bob.name + `","administrator_level":"Administrator"}]}`},
		{http.MethodPost, "/slurmdb/v0.0.38/qos", `{"qos":[{"name":"mine","priority":1000000}]}`},
	} {
		code, text := r.send(t, body.method, body.path, body.body, "Authorization", "Bearer "+bob)
		if code != http.StatusInternalServerError ||
			!strings.Contains(text, "Access/permission denied") && !strings.Contains(text, "Invalid user id") {
			t.Errorf("bob's %s %s: %d %s", body.method, body.path, code, text)
		}
	}
	large := `{"script":"` + strings.Repeat("x", 10<<20) + `"}`
	if code, text := r.send(t, http.MethodPost, "/slurm/v0.0.38/job/submit", large, "Authorization", "Bearer "+bob); code != http.StatusBadRequest {
		t.Errorf("10 MiB: %d %.200s", code, text)
	}
	r.socketOf(t)
	for _, a := range []account{s.alice, s.bob} {
		other := s.alice.name
		if a.name == other {
			other = s.bob.name
		}
		line := a.command(s.bin, "scontrol", "token", "username="+other)
		out, err := exec.Command(line[0], line[1:]...).CombinedOutput()
		want := "scontrol: error: slurm_fetch_token: error with request: Invalid user id\nError fetching token\n"
		if err == nil || string(out) != want {
			t.Errorf("%s requests a token of %s: %v %s", a.name, other, err, out)
		}
	}
	line := s.bob.command(s.bin, "scontrol", "token", "lifespan=infinite")
	if out, err := exec.Command(line[0], line[1:]...).CombinedOutput(); err == nil || !strings.Contains(string(out), "at most") {
		t.Errorf("bob requests a token for ever: %v %s", err, out)
	}
}

// socketOf: over the socket, alice's processes need no token, and bob's do.
func (r *restServer) socketOf(t *testing.T) {
	t.Helper()
	for _, d := range []string{r.s.alice.home} { // bob may reach the socket
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(r.socket, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		by   account
		want string
	}{{r.s.alice, "HTTP/1.1 200 OK"}, {r.s.bob, "HTTP/1.1 401 Unauthorized"}} {
		const client = `import socket,sys
s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])
s.sendall(b"GET /slurm/v0.0.38/ping HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
print(s.makefile().readline().strip())`
		line := tt.by.command(r.s.bin, "python3", "-c", client, r.socket)
		out, err := exec.Command(line[0], line[1:]...).CombinedOutput()
		if err != nil || strings.TrimSpace(string(out)) != tt.want {
			t.Errorf("%s: %v %s, want %s", tt.by.name, err, out, tt.want)
		}
	}
}

// later reads documents of later versions, in which numbers are objects.
func (r *restServer) later(t *testing.T, job string) {
	alice := r.as(t, r.s.alice)
	r.laterMembers(t, alice)
	for _, version := range []string{"v0.0.40", "v0.0.41", "v0.0.42"} {
		code, text := alice(http.MethodGet, "/slurm/"+version+"/job/"+job, "")
		var got struct {
			Jobs []struct {
				JobID     int64    `json:"job_id"`
				State     []string `json:"job_state"`
				TimeLimit struct{ Infinite, Set bool }
			}
		}
		if err := json.Unmarshal([]byte(text), &got); err != nil || code != http.StatusOK || len(got.Jobs) != 1 ||
			fmt.Sprint(got.Jobs[0].JobID) != job || !slices.Equal(got.Jobs[0].State, []string{"RUNNING"}) {
			t.Errorf("%s: %d %v %.500s", version, code, err, text)
		}
		code, text = alice(http.MethodPost, "/slurm/"+version+"/job/submit", `{"script":"#!/bin/sh\ntrue\n","job":{
			"environment":["PATH=/bin:/usr/bin"],"minimum_nodes":1,"maximum_nodes":2,"standard_output":"/dev/null",
			"time_limit":{"set":true,"infinite":false,"number":5},"current_working_directory":"/tmp"}}`)
		if code != http.StatusOK {
			t.Errorf("%s: %d %s", version, code, text)
		}
		code, text = alice(http.MethodGet, "/slurm/"+version+"/job/999999", "")
		if code != http.StatusInternalServerError || !strings.Contains(text, `"warnings": []`) {
			t.Errorf("%s: %d %s", version, code, text)
		}
	}
}

// laterMembers: each member of the documents of v0.0.42 is in its published schema, with
// the same type.
func (r *restServer) laterMembers(t *testing.T, alice func(method, path, body string) (int, string)) {
	t.Helper()
	files, err := filepath.Glob("testdata/rest/members-v0.0.42/*.txt")
	if err != nil || len(files) != 15 {
		t.Fatal(err, files)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		path := "/slurm/v0.0.42/" + name
		if db, ok := strings.CutPrefix(name, "db-"); ok {
			path = "/slurmdb/v0.0.42/" + db
		}
		code, text := alice(http.MethodGet, path, "")
		var doc any
		if err := json.Unmarshal([]byte(text), &doc); err != nil || code != http.StatusOK {
			t.Errorf("%s: %d %v %.200s", path, code, err, text)
			continue
		}
		got := map[string][]string{}
		collectMembers(doc, "", got)
		schema := readMembers(t, "members-v0.0.42/"+name)
		for member, types := range got {
			// Slurm's sacct has these too, beside the schema.
			inStep := strings.HasSuffix(member, "[].task") || strings.HasSuffix(member, "[].node")
			if want := schema[member]; want == nil && !coveredBy(member, schema) && !inStep {
				t.Errorf("%s: the schema has no member %s", path, member)
			} else if want != nil && !compatible(types, want) {
				t.Errorf("%s: %s is %s in the schema, not %s", path, member, want, types)
			}
		}
	}
}

// inetd serves a request over standard input and output.
func (r *restServer) inetd(t *testing.T) {
	line := r.s.alice.command(r.s.bin, "slurmrestd")
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Stdin = strings.NewReader("GET /slurm/v0.0.38/ping HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	out, err := cmd.Output()
	if err != nil || !strings.HasPrefix(string(out), "HTTP/1.1 200 OK\r\n") || !strings.Contains(string(out), `"ping": "UP"`) {
		t.Errorf("%v %s", err, out)
	}
}
