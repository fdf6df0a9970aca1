package option_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/translate/option"
)

// TestEverySupportedOptionHasATest checks that each supported option names an existing test
// of its effect.
func TestEverySupportedOptionHasATest(t *testing.T) {
	for _, o := range option.Table() {
		supported := false
		for _, c := range []option.Command{option.Sbatch, option.Srun, option.Salloc} {
			if status, _ := o.For(c); o.In&c != 0 && status == option.Supported {
				supported = true
			}
		}
		switch {
		case !supported:
		case o.TestName() == "":
			t.Errorf("--%s has status supported, but names no test of its effect", o.Name)
		default:
			exists(t, o)
		}
	}
}

// TestNamedTestsAreOfSupportedOptions checks that no test is named for an option that does
// not exist or is not supported.
func TestNamedTestsAreOfSupportedOptions(t *testing.T) {
	left := option.Tests()
	for _, o := range option.Table() {
		for _, c := range []option.Command{option.Sbatch, option.Srun, option.Salloc} {
			if status, _ := o.For(c); o.In&c != 0 && status == option.Supported {
				delete(left, o.Name)
				delete(left, c.String()+" --"+o.Name)
			}
		}
	}
	for name, test := range left {
		t.Errorf("%s is named for %s, which is not a supported option", test, name)
	}
}

// exists checks that the test exists and uses the option.
func exists(t *testing.T, o *option.Option) {
	const top = "../.."
	text := `--` + regexp.QuoteMeta(o.Name) + `\b`
	if o.Short != 0 {
		text += `|[\s"]-` + string(o.Short)
	}
	mention := regexp.MustCompile(text)
	if strings.HasSuffix(o.TestName(), ".txtar") {
		text, err := os.ReadFile(filepath.Join(top, o.TestName()))
		if err != nil {
			t.Errorf("--%s: %v", o.Name, err)
			return
		}
		if !mention.Match(text) {
			t.Errorf("--%s: %s does not use it", o.Name, o.TestName())
		}
		return
	}
	directory, name, _ := strings.Cut(o.TestName(), ".")
	files, _ := filepath.Glob(filepath.Join(top, directory, "*_test.go"))
	mentioned, there := false, false
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		there = there || strings.Contains(string(text), "\nfunc "+name+"(t *testing.T)")
		mentioned = mentioned || mention.Match(text)
	}
	if !there {
		t.Errorf("--%s: test %s does not exist", o.Name, o.TestName())
	}
	if !mentioned {
		t.Errorf("--%s: the tests of the package of %s do not use it", o.Name, o.TestName())
	}
}
