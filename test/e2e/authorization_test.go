package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/berth-hpc/berth/internal/authz"
	"github.com/berth-hpc/berth/internal/eventually"
)

// TestAuthorization checks the whole table of rights (package authz) with a real API server:
// for each row, each kind of caller tries the action, and must be refused if and only if the
// row denies it. A row without a probe fails the test.
func TestAuthorization(t *testing.T) {
	w := newWalk(t)
	for _, rule := range authz.Rules() {
		name := string(rule.Object) + " " + string(rule.Action)
		probe, ok := probes[name]
		if !ok {
			t.Errorf("no probe of %q", name)
			continue
		}
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			for _, c := range w.callers {
				w.try(t, &rule, probe, c)
			}
		})
	}
	for name := range probes {
		object, action, _ := strings.Cut(name, " ")
		if _, ok := authz.Find(authz.Object(object), authz.Action(action)); !ok {
			t.Errorf("a probe of %q, which has no row", name)
		}
	}
}

// walk has a cluster and a caller of each kind. Alice owns the jobs, in the account
// physics, which carol coordinates.
type walk struct {
	*shared
	admin   *caller
	alice   *caller
	jobs    string // path of alice's BatchJobs
	callers []*party
	count   int
}

// party is a kind of caller, and its relation to alice's jobs.
type party struct {
	name string
	*caller
	roles authz.Roles
	// otherRoles are the roles for objects other than alice's jobs.
	otherRoles authz.Roles
}

func newWalk(t *testing.T) *walk {
	t.Helper()
	var carol, opal account
	s := newShared(t, func(t *testing.T) account { carol = newAccount(t, "carol"); return carol },
		func(t *testing.T) account { opal = newAccount(t, "opal"); return opal })
	for _, args := range [][]string{
		{"add", "account", "physics"}, {"add", "account", "chemistry"}, {"add", "user", s.alice.name, "account=physics"}, {"add", "user", carol.name, "account=physics"},
		{"add", "coordinator", "account=physics", "names=" + carol.name},
		{"modify", "user", opal.name, "set", "adminlevel=operator"},
	} {
		s.root(t, append([]string{"sacctmgr", "-i"}, args...)...)
	}
	admin, rc := callerOf(t, filepath.Join(s.state, "kubeconfig"))
	of := func(a account) *caller {
		_, rc := callerOf(t, filepath.Join(a.home, ".local/state/berth/user.kubeconfig"))
		return upgradable(t, rc)
	}
	w := &walk{shared: s, admin: admin, alice: of(s.alice), jobs: fmt.Sprintf(batchJobs, s.alice.name)}
	w.grantWrites(t, s.bob, carol, opal)
	user := authz.Of(authz.Anyone, authz.User)
	w.callers = []*party{
		{"caller without credentials", without(t, rc, ""), 0, 0},
		{"another user", of(s.bob), user, user},
		{"coordinator", of(carol), user.And(authz.Coordinator), user},
		{"owner", w.alice, user.And(authz.Owner), user},
		{"a process in a job", without(t, rc, w.token(t)), user.And(authz.Owner), user},
		{"operator", of(opal), user.And(authz.Operator), user.And(authz.Operator)},
		{"administrator", upgradable(t, rc), user.And(authz.Operator).And(authz.Administrator), user.And(authz.Operator).And(authz.Administrator)},
	}
	return w
}

// without returns a caller without a certificate; the token may be empty.
func without(t *testing.T, rc *rest.Config, token string) *caller {
	t.Helper()
	return upgradable(t, &rest.Config{Host: rc.Host, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: rc.CAData, CAFile: rc.CAFile}})
}

// upgradable returns a caller whose connections use HTTP/1.1, which can be upgraded.
func upgradable(t *testing.T, rc *rest.Config) *caller {
	t.Helper()
	rc = rest.CopyConfig(rc)
	rc.NextProtos = []string{"http/1.1"}
	h, err := rest.HTTPClientFor(rc)
	if err != nil {
		t.Fatal(err)
	}
	return &caller{h, rc.Host}
}

// grantWrites grants the accounts Kubernetes' permission to write alice's BatchJobs, as an
// administrator might by mistake, so that Berth's own admission decides.
func (w *walk) grantWrites(t *testing.T, list ...account) {
	t.Helper()
	path := "/apis/rbac.authorization.k8s.io/v1/namespaces/user-" + w.shared.alice.name
	var subjects []object
	for _, a := range list {
		subjects = append(subjects, object{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": a.name})
	}
	for kind, o := range map[string]object{
		"roles": {"metadata": object{"name": "walk"}, "rules": []object{{"apiGroups": []string{"berth.hpc"}, "resources": []string{"batchjobs"}, "verbs": []string{"create", "update", "patch", "delete"}}}},
		"rolebindings": {"metadata": object{"name": "walk"}, "subjects": subjects,
			"roleRef": object{"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "walk"}},
	} {
		if code, text := w.admin.do(t, http.MethodPost, path+"/"+kind, o); code != http.StatusCreated {
			t.Fatalf("%s: %d %s", kind, code, text)
		}
	}
}

// token returns a token such as alice's pods have.
func (w *walk) token(t *testing.T) string {
	t.Helper()
	code, text := w.admin.do(t, http.MethodPost, "/api/v1/namespaces/user-"+w.shared.alice.name+"/serviceaccounts/berth-job/token",
		object{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": object{}})
	var answer struct{ Status struct{ Token string } }
	if err := json.Unmarshal([]byte(text), &answer); err != nil || answer.Status.Token == "" {
		t.Fatalf("%d %s: %v", code, text, err)
	}
	return answer.Status.Token
}

// try sends one caller's request for one action, and compares the result with the rule.
func (w *walk) try(t *testing.T, rule *authz.Rule, probe func(*testing.T, *walk, *party) answer, c *party) {
	t.Helper()
	roles := c.otherRoles
	if rule.Object == authz.Job || rule.Object == authz.Step || rule.Object == authz.Token {
		roles = c.roles
	}
	got := probe(t, w, c)
	switch grant := rule.Grant(roles); {
	case got.code >= 500:
		t.Errorf("%s: %d %.300s", c.name, got.code, got.text)
	case grant == authz.Deny && !got.refused():
		t.Errorf("%s is not refused: %d %.300s", c.name, got.code, got.text)
	case (grant == authz.Allow || grant == authz.Public) && got.refused():
		t.Errorf("%s is refused: %d %.300s", c.name, got.code, got.text)
	}
}

// answer is the response to a probe.
type answer struct {
	code   int
	text   string
	hidden bool // the requested object is not in it
}

// refused reports whether the caller was refused for lack of permission. Other errors,
// such as that a job does not run, do not concern the table.
func (a answer) refused() bool {
	return a.hidden || a.code == http.StatusUnauthorized || a.code == http.StatusForbidden ||
		strings.Contains(a.text, authz.Denied) || strings.Contains(a.text, authz.NoPermission) || strings.Contains(a.text, authz.InvalidUser)
}

// job submits a held job of alice's and returns its id and the path of its object.
func (w *walk) job(t *testing.T) (id, path string) {
	t.Helper()
	o := submission(t, 10)
	code, text := w.alice.do(t, http.MethodPost, w.jobs, o)
	var b struct {
		Metadata struct{ Name string }
		Spec     struct{ JobID int64 }
	}
	if err := json.Unmarshal([]byte(text), &b); err != nil || b.Spec.JobID == 0 {
		t.Fatalf("%d %s: %v", code, text, err)
	}
	return fmt.Sprint(b.Spec.JobID), w.jobs + "/" + b.Metadata.Name
}

func (c *party) send(t *testing.T, method, path string, body any) answer {
	t.Helper()
	code, text := c.do(t, method, path, body)
	return answer{code: code, text: text}
}

func (c *party) operate(t *testing.T, op object) answer {
	t.Helper()
	return c.send(t, http.MethodPost, queueRoot+"/operations", op)
}

type probe = func(*testing.T, *walk, *party) answer

// verb tries an operation on a new job.
func verb(name string, more object) probe {
	return func(t *testing.T, w *walk, c *party) answer {
		t.Helper()
		id, _ := w.job(t)
		op := object{"verb": name, "jobs": []string{id}}
		for k, v := range more {
			op[k] = v
		}
		return c.operate(t, op)
	}
}

// entity tries an operation on an object of the cluster. before creates it.
func entity(kind, name, target string, set, before object) probe {
	return func(t *testing.T, w *walk, c *party) answer {
		t.Helper()
		w.count++
		target := strings.ReplaceAll(target, "N", fmt.Sprint(w.count))
		if before != nil {
			(&party{caller: w.admin}).operate(t, object{"verb": "create", "entity": kind, "targets": []string{target}, "set": before})
		}
		return c.operate(t, object{"verb": name, "entity": kind, "targets": []string{target}, "set": set})
	}
}

// get reads a path.
func get(path string) probe {
	return func(t *testing.T, _ *walk, c *party) answer {
		t.Helper()
		return c.send(t, http.MethodGet, queueRoot+path, nil)
	}
}

// step tries something on the running step of a job of alice's.
func step(op object) probe {
	return func(t *testing.T, w *walk, c *party) answer {
		t.Helper()
		body := object{}
		for k, v := range op {
			body[k] = v
		}
		if body["entity"] == nil {
			body["jobs"] = []string{w.running(t) + ".0"}
		} else {
			body["targets"] = []string{w.running(t) + ".0"}
			body["jobs"] = body["targets"]
		}
		return c.operate(t, body)
	}
}

// running returns the id of a job of alice's whose step 0 runs.
func (w *walk) running(t *testing.T) string {
	t.Helper()
	const name = "walk"
	if id := w.run(t, w.shared.alice, "squeue", "-h", "-s", "-n", name, "-o", "%i"); strings.Contains(id, ".0") {
		id, _, _ = strings.Cut(id[strings.LastIndexByte(id[:strings.Index(id, ".0")], '\n')+1:], ".")
		return id
	}
	id := w.run(t, w.shared.alice, "sbatch", "--parsable", "-J", name, "-n1", "-o", "/dev/null", "--wrap", "srun -J walk sleep 600; sleep 600")
	eventually.Holds(t, "the step runs", func() bool {
		return strings.Contains(w.run(t, w.shared.alice, "squeue", "-h", "-s", "-j", id, "-o", "%i"), id+".0")
	})
	return id
}

// change tries a change of accounts, users and QOS, which the API checks without making it.
func change(item func(w *walk) object) probe {
	return func(t *testing.T, w *walk, c *party) answer {
		t.Helper()
		return c.send(t, http.MethodPost, queueRoot+"/associations", object{"check": true, "items": []object{item(w)}})
	}
}

// userOf returns bob's user in accounting, with changes.
func userOf(t *testing.T, w *walk, set object) object {
	t.Helper()
	_, text := w.admin.do(t, http.MethodGet, queueRoot+"/associations", nil)
	var all struct{ Users []object }
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		t.Fatal(err)
	}
	for _, u := range all.Users {
		if u["name"] == w.bob.name {
			for k, v := range set {
				u[k] = v
			}
			return object{"user": u}
		}
	}
	t.Fatalf("no %s in %.300s", w.bob.name, text)
	return nil
}

// stream opens a path whose response does not end, and returns its beginning.
func (c *party) stream(t *testing.T, path string, header ...string) answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := c.http.Do(r)
	if errors.Is(err, context.DeadlineExceeded) {
		return answer{code: http.StatusOK} // it was accepted, and no data has come yet
	}
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode < 300 {
		return answer{code: resp.StatusCode}
	}
	text := make([]byte, 500)
	n, _ := resp.Body.Read(text) // the beginning is enough
	return answer{code: resp.StatusCode, text: string(text[:n])}
}
