package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/internal/eventually"
)

// sender sends a request and returns the status code and the body of the response.
type sender func(method, path, body string, headers ...string) (int, string)

// restOfRoot starts slurmrestd with the administrator's credential. It returns its socket and
// a function that sends requests to it, with headers: a name, and its value.
func (d *database) restOfRoot() (socket string, send sender) {
	t := d.t
	t.Helper()
	dir, err := os.MkdirTemp("", "berth-rest-") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	socket = filepath.Join(dir, "s")
	cmd := exec.Command(filepath.Join(d.bin, "slurmrestd"), "unix:"+socket)
	cmd.Env = d.environ(dir)
	var errs strings.Builder
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = os.RemoveAll(dir)
	})
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}
	eventually.Holds(t, "slurmrestd listens", func() bool {
		c, err := dial(t.Context(), "", "")
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	client := &http.Client{Transport: &http.Transport{DialContext: dial}}
	return socket, func(method, path, body string, headers ...string) (int, string) {
		t.Helper()
		q, err := http.NewRequestWithContext(t.Context(), method, "http://rest"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(headers); i += 2 {
			q.Header.Set(headers[i], headers[i+1])
		}
		resp, err := client.Do(q)
		if err != nil {
			t.Fatalf("%v; %s", err, errs.String())
		}
		defer func() { _ = resp.Body.Close() }()
		data, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(data)
	}
}

// TestRESTChangesAccounting: POST and DELETE under /slurmdb do what sacctmgr does, with the
// answers of Slurm 22.05, and what a GET shows can be posted again.
func TestRESTChangesAccounting(t *testing.T) {
	t.Parallel()
	d := &database{start(t, "--nodes", "1", "--cpus", "1"), t, "", ""}
	admin, _ := callerOf(t, filepath.Join(d.state, "kubeconfig"))
	user := object{"apiVersion": "berth.hpc/v1alpha1", "kind": "User", "metadata": object{"name": "anna"},
		"spec": object{"uid": 4711, "gid": 4711, "namespace": "user-anna", "home": "/tmp"}}
	if code, text := admin.do(t, http.MethodPost, "/apis/berth.hpc/v1alpha1/users", user); code != http.StatusCreated {
		t.Fatalf("%d %s", code, text)
	}
	socket, send := d.restOfRoot()
	_, cluster, _ := d.run("sacctmgr", "-nP", "list", "cluster", "format=cluster")
	cluster = strings.TrimSpace(cluster)
	eventually.Holds(t, "anna is known", func() bool {
		code, _ := send(http.MethodGet, "/slurmdb/v0.0.38/user/anna", "")
		return code == http.StatusOK
	})
	done := func(name, method, path, body string, code int, part string) {
		t.Helper()
		got, text := send(method, "/slurmdb/v0.0.38/"+path, body)
		if got != code || !strings.Contains(text, part) {
			t.Errorf("%s: %s %s %s: %d %s", name, method, path, body, got, text)
		}
	}
	shows := func(want string, args ...string) {
		t.Helper()
		eventually.Holds(t, fmt.Sprintf("%v shows %q", args, want), func() bool {
			_, out, _ := d.run("sacctmgr", append([]string{"-nP", "show"}, args...)...)
			return strings.TrimSpace(out) == want
		})
	}
	const post, remove, ok = http.MethodPost, http.MethodDelete, `"errors": []`
	done("a QOS", post, "qos", `{"qos":[{"name":"high","description":"fast","priority":7,"preempt":{"list":["normal"]},
		"limits":{"grace_time":30,"max":{"tres":{"per":{"user":[{"type":"cpu","name":null,"count":4},{"type":"gres","name":"gpu","count":1}]}},
		"wall_clock":{"per":{"job":60}}}}}]}`, 200, ok)
	shows("high|7|00:00:30|01:00:00|cpu=4,gres/gpu=1", "qos", "high", "format=name,priority,gracetime,maxwall,maxtrespu")
	done("accounts", post, "accounts/", `{"accounts":[{"name":"physics","description":"all of it","organization":"uni"},{"name":"theory"}]}`, 200, ok)
	done("a parent", post, "associations", `{"associations":[{"account":"theory","cluster":"`+cluster+`","partition":"","parent_account":"physics"}]}`, 200, ok)
	shows("physics|all of it|uni", "account", "physics", "format=account,description,organization")
	shows("physics", "associations", "accounts=theory", "format=parentname")
	done("an association", post, "associations", `{"associations":[{"account":"theory","user":"anna","cluster":"`+cluster+`","partition":"",
		"max":{"jobs":{"active":3,"per":{"wall_clock":10}}},"shares_raw":5,"qos":["high","normal"],"default":{"qos":"high"}}]}`, 200, ok)
	shows("theory|anna|5|3|00:10:00|high|high,normal", "associations", "users=anna", "format=account,user,share,maxjobs,maxwall,defaultqos,qos")
	done("a level", post, "users", `{"users":[{"name":"anna","administrator_level":"Operator","default":{"account":"theory"}}]}`, 200, ok)
	done("a coordinator", post, "accounts", `{"accounts":[{"name":"physics","coordinators":[{"name":"anna","direct":1}]}]}`, 200, ok)
	done("a wckey", post, "wckeys", `{"wckeys":[{"name":"key","user":"anna","cluster":"`+cluster+`"}]}`, 200, ok)
	shows("anna|theory|Operator", "user", "anna", "format=user,defaultaccount,adminlevel")

	_, before, _ := d.run("sacctmgr", "-nP", "show", "associations")
	_, config := send(http.MethodGet, "/slurmdb/v0.0.38/config", "")
	done("what GET shows", post, "config", config, 200, ok)
	if _, after, _ := d.run("sacctmgr", "-nP", "show", "associations"); after != before {
		t.Errorf("posting the configuration changes it:\n%s\nit was\n%s", after, before)
	}

	done("no name", post, "users", `{"users":[{}]}`, 500, `"description": "Missing required field 'name'"`)
	done("no list", post, "users", `{"users":{}}`, 400, `"error_number": 9200`)
	done("nothing", post, "users", `{}`, 400, `"description": "Query parameter not found"`)
	done("no JSON", post, "users", `x`, 400, "Unable to parse query.")
	done("an unknown level", post, "users", `{"users":[{"name":"anna","administrator_level":"Boss"}]}`, 400, "Failed to parse field 'administrator_level'")
	done("an unknown field", post, "users", `{"users":[{"name":"anna","shoe_size":43}]}`, 400, "'shoe_size'")
	done("a stranger", post, "users", `{"users":[{"name":"nobody-knows"}]}`, 400, "is not a user of this cluster")
	done("no account", post, "associations", `{"associations":[{"user":"anna"}]}`, 400, "Missing required field 'account'")
	done("an unknown account", post, "associations", `{"associations":[{"user":"anna","account":"nope"}]}`, 400, "there is no account")
	done("another cluster", post, "associations", `{"associations":[{"user":"anna","account":"theory","cluster":"moon"}]}`, 400, "not \\\"moon\\\"")
	done("a circle", post, "associations", `{"associations":[{"account":"physics","parent_account":"theory"}]}`, 400, "below itself")
	done("a huge number", post, "qos", `{"qos":[{"name":"high","limits":{"grace_time":99999999999}}]}`, 400, "limits.grace_time")
	done("all or none", post, "accounts", `{"accounts":[{"name":"new"},{"name":""}]}`, 500, "Missing required field")
	shows("", "account", "new", "format=account")
	done("a cluster", post, "clusters", `{"clusters":[{"name":"moon"}]}`, 400, "registers itself")

	done("no condition", remove, "associations", "", 400, "name a user or an account")
	done("no such association", remove, "association?user=anna&account=physics", "", 304, "")
	done("no such account", remove, "account/nope", "", 200, `"error_number": 1900`)
	done("no such QOS", remove, "qos/nope", "", 500, `"error_number": 9003`)
	done("no such wckey", remove, "wckey/nope", "", 500, `"deleted_wckeys": []`)
	done("an account with others below", remove, "account/physics", "", 400, "theory")
	done("a wckey", remove, "wckey/key", "", 200, `"deleted_wckeys": [`)
	done("an association", remove, "association?user=anna&account=theory", "", 200, fmt.Sprintf("C = %-10s A = theory     U = anna     ", cluster))
	shows("", "associations", "users=anna", "format=account")
	done("a user without associations", remove, "user/anna", "", 304, "")
	done("an account", remove, "account/theory", "", 200, ok)
	done("a QOS", remove, "qos/high", "", 200, `"removed_qos": [`)
	shows("", "account", "theory", "format=account")
	t.Run("generated client", func(t *testing.T) { useGenerated(t, socket, send) })
}

// useGenerated lets oapi-codegen generate a client from the served description of the API,
// which must work.
func useGenerated(t *testing.T, socket string, send sender) {
	dir := t.TempDir()
	for _, name := range []string{"go.mod", "go.sum", "main.go"} {
		data, err := os.ReadFile(filepath.Join("../restclient", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, description := send(http.MethodGet, "/openapi.json", "")
	if err := os.WriteFile(filepath.Join(dir, "openapi.json"), []byte(description), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "slurm"), 0o700); err != nil {
		t.Fatal(err)
	}
	var out []byte
	for _, args := range [][]string{
		{"tool", "oapi-codegen", "-generate", "types,client", "-package", "slurm", "-o", "slurm/slurm.gen.go", "openapi.json"},
		{"run", ".", socket},
	} {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = dir
		var err error
		if out, err = cmd.CombinedOutput(); err != nil {
			t.Fatalf("go %v: %v\n%s", args, err, out)
		}
	}
	if want := "submitted\nread generated\ncancelled\naccount by a client\ndeleted\n"; string(out) != want {
		t.Errorf("the generated client prints\n%s", out)
	}
}
