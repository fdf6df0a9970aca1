package authz_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/authz"
)

// leaves returns the paths of the fields of a type that are not structs.
func leaves(t reflect.Type, prefix string) []string {
	var out []string
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-":
		case f.Type.Kind() == reflect.Struct:
			out = append(out, leaves(f.Type, prefix+name+".")...)
		default:
			out = append(out, prefix+name)
		}
	}
	return out
}

// TestEveryFieldHasARow: the table of fields has exactly the fields of a job.
func TestEveryFieldHasARow(t *testing.T) {
	rows := map[string]int{}
	for _, f := range authz.Fields() {
		for _, p := range f.Paths {
			rows[p]++
		}
	}
	for _, p := range leaves(reflect.TypeFor[v1alpha1.BatchJobSpec](), "") {
		if rows[p] != 1 {
			t.Errorf("spec.%s has %d rows: define in fields.go who may set and change it", p, rows[p])
		}
		delete(rows, p)
	}
	for p := range rows {
		t.Errorf("spec.%s is in the table and not in the type", p)
	}
}

// TestEveryOperationHasARule reads the constants of operations and entities, each of
// which must have a rule.
func TestEveryOperationHasARule(t *testing.T) {
	consts := constants(t, "../../translate/status/operation.go")
	found := 0
	for name, verb := range consts {
		if !strings.HasPrefix(name, "Op") || verb == "create" || verb == "delete" {
			continue
		}
		found++
		object := authz.Job
		if name == "OpReboot" {
			object = authz.Node
		}
		if _, ok := authz.Find(object, authz.Action(verb)); !ok {
			t.Errorf("%s (%s) has no rule for objects of the kind %s", name, verb, object)
		}
	}
	for name, entity := range consts {
		if strings.HasPrefix(name, "Entity") {
			found++
			if _, ok := authz.Find(authz.Object(entity), authz.Update); !ok {
				t.Errorf("%s (%s) has no rule for updates", name, entity)
			}
		}
	}
	if found < 15 {
		t.Errorf("only %d constants were found", found)
	}
}

// constants returns the values of the string constants in a file.
func constants(t *testing.T, path string) map[string]string {
	t.Helper()
	src, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := parser.ParseFile(token.NewFileSet(), path, src, 0)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	ast.Inspect(tree, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok || len(v.Values) != len(v.Names) {
			return true
		}
		for i, name := range v.Names {
			if lit, ok := v.Values[i].(*ast.BasicLit); ok && lit.Kind == token.STRING {
				text, err := strconv.Unquote(lit.Value)
				if err != nil {
					t.Fatal(err)
				}
				out[name.Name] = text
			}
		}
		return true
	})
	return out
}

// TestRules checks properties of every rule.
func TestRules(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range authz.Rules() {
		key := string(r.Object) + " " + string(r.Action)
		if seen[key] {
			t.Errorf("%s has two rules", key)
		}
		seen[key] = true
		if r.Grant(0) != authz.Deny {
			t.Errorf("%s: allowed to a caller without roles", key)
		}
		if r.Refusal == "" {
			t.Errorf("%s has no refusal", key)
		}
		for _, g := range r.Roles {
			missing := g == authz.Public && r.Private == "" || g == authz.Optional && r.Option == "" ||
				g == authz.Limited && r.Note == ""
			if missing {
				t.Errorf("%s: what a grant depends on is missing", key)
			}
		}
		if r.Action != authz.Attach && r.Grant(authz.Of(authz.Administrator)) != authz.Allow {
			t.Errorf("%s: not allowed to an administrator", key)
		}
	}
	for _, f := range authz.Fields() {
		if (f.Set == authz.Bounded || f.Change == authz.Bounded) != (f.Bound != "") {
			t.Errorf("%v: the bound is %q", f.Paths, f.Bound)
		}
	}
}

func TestUnknownIsDenied(t *testing.T) {
	all := authz.Of(
		authz.Anyone, authz.User, authz.Owner, authz.Coordinator, authz.Operator, authz.Administrator, authz.Controller,
		authz.Process,
	)
	if authz.May(all, authz.Job, "teleport") != authz.Deny {
		t.Error("an action without a rule is allowed")
	}
	if !authz.OperatorKey("teleport") {
		t.Error("a parameter without a row is allowed to all users")
	}
}
