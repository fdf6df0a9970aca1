package cli_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/cli"
	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/translate/option"
)

// output runs a command that needs no cluster and returns its output.
func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	var out, messages bytes.Buffer
	p := stdio.System()
	p.Out, p.Err, p.In = &out, &messages, strings.NewReader("")
	p.LookupEnv = func(string) (string, bool) { return "", false }
	if code := cli.Main(name, args, p, cli.Deps{}); code != 0 || messages.Len() > 0 {
		t.Errorf("%s %s: exit code %d, %s", name, args, code, messages.String())
	}
	return out.String()
}

// TestEveryCommandHasHelp checks --help, which describes each option, --usage, which
// lists each supported option, and --version. None of them needs a cluster.
func TestEveryCommandHasHelp(t *testing.T) {
	for _, name := range cli.Names() {
		list, _ := option.Of(name)
		if _, ok := option.AboutOf(name); !ok || len(list) == 0 {
			t.Errorf("%s: there is no table of options, or no description of the command", name)
			continue
		}
		has := map[string]bool{}
		for _, o := range list {
			has[o.Name] = true
		}
		if !has["help"] || !has["version"] {
			t.Errorf("%s has no --help or --version", name)
		}
		help, usage := output(t, name, "--help"), ""
		if has["usage"] {
			usage = output(t, name, "--usage")
		}
		opening := strings.Fields(strings.TrimPrefix(help, "Usage:"))
		if len(opening) == 0 || opening[0] != name {
			t.Errorf("%s --help begins %.60q", name, help)
		}
		for _, o := range list {
			named := strings.Contains(help, "--"+o.Name) || o.LetterOnly
			if !named || !strings.Contains(help, o.Help) {
				t.Errorf("%s --help does not explain --%s", name, o.Name)
			}
			short := "-" + string(rune(o.Short))
			status, _ := o.StatusIn(name)
			listed := strings.Contains(usage, "--"+o.Name) || strings.Contains(usage, "["+short)
			if usage != "" && status != option.Refused && !listed {
				t.Errorf("%s --usage lacks --%s", name, o.Name)
			}
		}
		for _, v := range option.VerbsOf(name) {
			if !strings.Contains(help, v.Usage) || !strings.Contains(help, v.Help) {
				t.Errorf("%s --help does not explain %s", name, v.Name)
			}
		}
		if got := output(t, name, "--version"); got != "slurm 22.05.8\n" {
			t.Errorf("%s --version: %q", name, got)
		}
	}
}
