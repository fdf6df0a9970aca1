package chart

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiserver "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"sigs.k8s.io/yaml"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// TestDocumentedValues: the chart accepts the values in the pages for administrators, and
// objects in them have the fields of their types.
func TestDocumentedValues(t *testing.T) {
	pages, err := filepath.Glob("../../docs/admin/*.md")
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, page := range pages {
		data, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		blocks := strings.Split(string(data), "```yaml\n")
		for _, b := range blocks[1:] {
			values, _, _ := strings.Cut(b, "```")
			tried++
			if strings.HasPrefix(values, "apiVersion: ") {
				checkObject(t, page, values)
				continue
			}
			values = strings.ReplaceAll(values, "AAAA...", "AAAAC3NzaC1lZDI1NTE5AAAAI")
			file := filepath.Join(t.TempDir(), "values.yaml")
			if err := os.WriteFile(file, []byte(values), 0o600); err != nil {
				t.Fatal(err)
			}
			args := []string{"--values", file}
			if !strings.Contains(values, "users:") {
				args = append(args, alice...)
			}
			if _, output, err := template(t, args...); err != nil {
				t.Errorf("%s: %v: %s\n%s", page, err, output, values)
			}
		}
	}
	if tried < 4 {
		t.Errorf("only %d blocks were found", tried)
	}
}

// checkObject fails the test if the text is not an object of Berth's, a class of devices or a
// configuration of the API server, or has unknown fields.
func checkObject(t *testing.T, page, text string) {
	t.Helper()
	var kind metav1.TypeMeta
	if err := yaml.Unmarshal([]byte(text), &kind); err != nil {
		t.Errorf("%s: %v\n%s", page, err, text)
		return
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), apiserver.AddToScheme(scheme), resourcev1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	object, err := scheme.New(kind.GroupVersionKind())
	if err == nil {
		err = yaml.UnmarshalStrict([]byte(text), object)
	}
	if err != nil {
		t.Errorf("%s: %v\n%s", page, err, text)
	}
}
