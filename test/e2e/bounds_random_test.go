package e2e

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/eventually"
	"github.com/berth-hpc/berth/translate/bounds"
	batchjob "github.com/berth-hpc/berth/translate/job"
)

// random sends objects and patches with random and extreme values, and checks that every
// stored object is within the limits. BERTH_TEST_FULL=1 sends 10,000.
func (b *bounded) random(t *testing.T) {
	n := 400
	if os.Getenv("BERTH_TEST_FULL") != "" {
		n = 10_000
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	g := &generator{rand.New(rand.NewPCG(seed, 1))} //nolint:gosec // a test's values
	_, path := b.held(t)
	codes, stored := map[string]int{}, 0
	for i := range n {
		o := submission(t, 10)
		job := o["spec"].(object)["job"].(object) //nolint:forcetypeassert // submission makes it
		for range 1 + g.IntN(3) {
			g.change(reflect.TypeFor[batchjob.Job](), job)
		}
		method, to, body := http.MethodPost, b.jobs, any(o)
		if i%3 == 2 {
			method, to, body = http.MethodPatch, path, object{"spec": object{"job": job}}
		}
		code, text := b.retry(t, method, to, body)
		codes[fmt.Sprint(method, " ", code)]++
		switch {
		case code >= 500:
			t.Errorf("%d %.300s\nfor %.1000s", code, text, asJSON(body))
		case code < 300:
			stored++
			b.check(t, text)
		}
		if stored%500 == 499 {
			b.run(t, b.bob, "scancel", "-u", b.bob.name)
			_, path = b.held(t)
		}
	}
	t.Logf("%d sent, %d stored: %v", n, stored, codes)
	if stored < n/20 {
		t.Errorf("only %d of %d were stored: too few to test anything", stored, n)
	}
	b.checkAll(t)
	b.run(t, b.bob, "scancel", "-u", b.bob.name)
}

func asJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// retry sends a request, and repeats it while it is refused for the rate of requests.
func (b *bounded) retry(t *testing.T, method, path string, body any) (code int, text string) {
	t.Helper()
	eventually.Holds(t, "the request is not refused for the rate of requests", func() bool {
		code, text = b.api.do(t, method, path, body)
		return code != http.StatusTooManyRequests
	})
	return code, text
}

// check checks one stored object.
func (b *bounded) check(t *testing.T, text string) {
	t.Helper()
	stored := &v1alpha1.BatchJob{}
	if err := json.Unmarshal([]byte(text), stored); err != nil {
		t.Fatal(err)
	}
	if err := bounds.Job(&stored.Spec.Job); err != nil {
		t.Errorf("stored: %v\n%.1000s", err, text)
	}
	for _, err := range []error{
		bounds.Payload.Check(stored.Spec.PayloadBytes()), bounds.Description.Check(stored.DescriptionBytes()),
		bounds.Annotations.Check(int64(len(stored.Annotations))),
	} {
		if err != nil {
			t.Errorf("stored: %v", err)
		}
	}
	if stored.Spec.User != b.bob.name || stored.Spec.JobID < 1 || stored.Spec.Suspend {
		t.Errorf("stored: user %q, id %d, suspend %v", stored.Spec.User, stored.Spec.JobID, stored.Spec.Suspend)
	}
}

// checkAll checks the jobs that are in the queue at the end.
func (b *bounded) checkAll(t *testing.T) {
	t.Helper()
	admin, _ := callerOf(t, filepath.Join(b.state, "kubeconfig"))
	_, text := admin.do(t, http.MethodGet, b.jobs, nil)
	var list struct{ Items []json.RawMessage }
	if err := json.Unmarshal([]byte(text), &list); err != nil || len(list.Items) == 0 {
		t.Fatalf("%v: %.300s", err, text)
	}
	for _, item := range list.Items {
		b.check(t, string(item))
	}
}

// generator makes JSON values for the fields of a type.
type generator struct{ *rand.Rand }

// change gives one member of o, which is a struct of type typ, another value.
func (g *generator) change(typ reflect.Type, o object) {
	fields := bounds.Fields(typ)
	f := fields[g.IntN(len(fields))]
	if inner := f.Type; inner.Kind() == reflect.Struct {
		sub, ok := o[f.Name].(object)
		if !ok {
			sub = object{}
		}
		g.change(inner, sub)
		o[f.Name] = sub
		return
	}
	o[f.Name] = g.value(f.Type, 0)
}

func (g *generator) value(typ reflect.Type, depth int) any {
	if g.IntN(40) == 0 {
		return []any{nil, "x", -1, 1.5, []int{1}, object{"x": 1}, true}[g.IntN(7)] // of another type
	}
	switch typ.Kind() {
	case reflect.Pointer:
		return g.value(typ.Elem(), depth)
	case reflect.Bool:
		return g.IntN(2) == 0
	case reflect.String:
		return g.text(depth)
	case reflect.Slice:
		list := make([]any, g.length(depth))
		for i := range list {
			list[i] = g.value(typ.Elem(), depth+1)
		}
		return list
	case reflect.Map:
		m := object{}
		for range g.length(depth) {
			m[g.text(depth+1)] = g.value(typ.Elem(), depth+1)
		}
		return m
	case reflect.Struct:
		o := object{}
		for _, f := range bounds.Fields(typ) {
			if g.IntN(4) > 0 {
				o[f.Name] = g.value(f.Type, depth+1)
			}
		}
		return o
	default:
		return g.number()
	}
}

func (g *generator) number() int64 {
	edges := []int64{0, 1, 2, 3, -1, -2, 65533, 65534, 65535, math.MaxInt32, math.MaxInt32 - 1, math.MinInt32, math.MaxUint32, 1 << 53,
		math.MaxInt64, math.MinInt64, bounds.MaxMinutes, bounds.MaxMinutes + 1, bounds.MaxInstant, bounds.MaxInstant + 1}
	if g.IntN(2) == 0 {
		return int64(g.IntN(100))
	}
	return edges[g.IntN(len(edges))]
}

func (g *generator) length(depth int) int {
	if depth > 0 {
		return g.IntN(3)
	}
	return []int{0, 1, 2, 16, 17, 64, 128, 129, 4096, 4097, 20_000}[g.IntN(11)]
}

func (g *generator) text(depth int) string {
	words := []string{"", "x", "node", "job", "afterok", "gpu", "user", "a", "t", "debug", "ALL", "/tmp", "é\n\x1b[31m", "\x00", "n[1-4]", "0-9%3"}
	if g.IntN(3) > 0 || depth > 0 {
		return words[g.IntN(len(words))]
	}
	sizes := []int{63, 64, 252, 253, 254, 1023, 1024, 1025, 4096, 4097, 128 << 10, 128<<10 + 1, 300_000}
	return strings.Repeat("y", sizes[g.IntN(len(sizes))])
}
