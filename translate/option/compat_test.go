package option_test

import (
	"flag"
	"os"
	"testing"

	"github.com/berth-hpc/berth/translate/option"
)

var update = flag.Bool("update", false, "rewrite docs/compatibility.md")

func TestCompatibilityPageIsTrue(t *testing.T) {
	const page = "../../docs/compatibility.md"
	want := option.CompatibilityPage()
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is out of date: go test ./translate/option -update", page)
	}
}
