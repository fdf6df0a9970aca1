package e2e

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/internal/eventually"
)

// claimsConfig is the configuration of a directory whose users log in at a provider.
const claimsConfig = `interval: 1s
identities: ["oidc:%u"]
allowGroups: [hpc]
accounts:
- {group: physics, account: physics}
home: /tmp
sources:
- name: sso
  openid:
    userPrefix: "oidc:"
    groupPrefix: "oidc:"
    groupGIDs: {physics: 3000}
    allocate: {min: 30000, max: 30999}
`

// TestOpenIDUsers: a person who presents a token of the provider becomes a user with the uid and the
// groups of its claims, submits jobs, and loses and gains accounts with its groups. Members of no
// allowed group, and tokens that are not valid, make no users. While the provider is away, and after
// a restart, the users are as before.
func TestOpenIDUsers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("several users need root: run these tests as root")
	}
	t.Parallel()
	p := newOpenIDProvider(t)
	authentication := p.config()
	text, err := os.ReadFile(authentication)
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, `    extra:
    - {key: "berth.hpc/uid", valueExpression: 'has(claims.uid_number) ? string(claims.uid_number) : ""'}
`...)
	dir := t.TempDir()
	config := filepath.Join(dir, "directory.yaml")
	for path, data := range map[string]string{authentication: string(text), config: claimsConfig} {
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"--nodes", "1", "--cpus", "2", "--authentication-config", authentication, "--directory", config}
	d := &database{start(t, args...), t, "", ""}
	admin, rc := callerOf(t, filepath.Join(d.state, "kubeconfig"))
	if code, text := admin.do(t, http.MethodPost, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", object{
		"metadata": object{"name": "of-the-provider"},
		"roleRef":  object{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "berth-queue"},
		"subjects": []object{{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "oidc:hpc"}},
	}); code != http.StatusCreated {
		t.Fatalf("%d %s", code, text)
	}
	if code, out, errs := d.run("sacctmgr", "-i", "add", "account", "physics"); code != 0 {
		t.Fatalf("%d %s%s", code, out, errs)
	}
	as := func(name, token, line string) string {
		kubeconfig := filepath.Join(dir, name+".kubeconfig")
		text := fmt.Sprintf(`current-context: c
contexts: [{name: c, context: {cluster: c, user: u, namespace: user-%s}}]
clusters: [{name: c, cluster: {server: %q, certificate-authority-data: %s}}]
users: [{name: u, user: {token: %s}}]
`, name, rc.Host, base64.StdEncoding.EncodeToString(rc.CAData), token)
		if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, _ := command(append(d.environ(dir), "KUBECONFIG="+kubeconfig), line)
		return out
	}
	user := func(name string) object {
		code, text := admin.do(t, http.MethodGet, "/apis/berth.hpc/v1alpha1/users/"+name, nil)
		if code != http.StatusOK {
			return nil
		}
		var o struct{ Spec object }
		if err := json.Unmarshal([]byte(text), &o); err != nil {
			t.Fatal(err)
		}
		return o.Spec
	}
	token := func(name string, groups []string, more object) string {
		claims := object{"sub": name, "groups": groups}
		for k, v := range more {
			claims[k] = v
		}
		return p.token(p.key, claims)
	}
	hpc, physics := []string{"hpc"}, []string{"hpc", "physics", "choir"}
	becomes := func(name, tok, uid string) {
		t.Helper()
		eventually.Holds(t, name+" is a user", func() bool {
			as(name, tok, "squeue")
			return fmt.Sprint(user(name)["uid"]) == uid
		})
	}
	anna := token("anna", physics, object{"uid_number": 20007})
	becomes("anna", anna, "20007")
	becomes("ben", token("ben", hpc, nil), "30000")
	out := filepath.Join("/tmp", fmt.Sprintf("berth-claims-%d.out", os.Getpid()))
	t.Cleanup(func() { _ = os.Remove(out) })
	eventually.Holds(t, "anna submits a job", func() bool {
		return strings.Contains(as("anna", anna, "sbatch -D /tmp -o "+out+" --wrap 'id -u; id -G'"), "Submitted batch job")
	})
	eventually.Holds(t, "the job ran as anna", func() bool {
		text, _ := os.ReadFile(out)
		return string(text) == "20007\n20007 3000\n"
	})
	accounts := func() string {
		_, out, _ := d.run("sacctmgr", "-n", "-P", "list", "user", "anna", "withassoc", "format=account")
		return strings.TrimSpace(out)
	}
	eventually.Holds(t, "anna has the account", func() bool { return accounts() == "physics" })
	eventually.Holds(t, "anna has left the group", func() bool {
		as("anna", token("anna", hpc, object{"uid_number": 20007}), "squeue")
		return accounts() == ""
	})

	for name, tok := range map[string]string{
		"carl": token("carl", []string{"choir"}, nil),
		"dora": p.token(newKey(t), object{"sub": "dora", "groups": hpc}),
		"emil": token("emil", hpc, object{"exp": 1_600_000_000}),
		"root": token("root", hpc, object{"uid_number": 20009}),
		"fred": token("fred", hpc, object{"uid_number": 0 - 1}),
		"gina": token("gina", hpc, object{"uid_number": 20007}), // anna's
	} {
		as(name, tok, "squeue")
	}
	// These are refused, or get an allocated uid, by the time that a later one is a user.
	becomes("hans", token("hans", hpc, object{"uid_number": 20010}), "20010")
	for _, name := range []string{"carl", "dora", "emil", "fred", "gina"} {
		if o := user(name); o != nil {
			t.Errorf("%s is a user: %v", name, o)
		}
	}

	if uid := fmt.Sprint(user("root")["uid"]); uid != "0" {
		t.Errorf("a token has changed the uid of root to %s", uid)
	}

	p.away.Store(true)
	if out := as("ben", token("ben", hpc, nil), "squeue -h; echo rc $?"); out != "rc 0" {
		t.Errorf("the provider is away: %s", out)
	}
	p.away.Store(false)
	d.down(t)
	d.up(t, args...)
	if uid := fmt.Sprint(user("ben")["uid"]); uid != "30000" {
		t.Errorf("after a restart ben's uid is %s", uid)
	}
	becomes("ida", token("ida", hpc, nil), "30001")
}
