package gen_test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/berth-hpc/berth/cli"
	"github.com/berth-hpc/berth/cli/doctor"
	"github.com/berth-hpc/berth/cli/events"
	"github.com/berth-hpc/berth/cli/export"
	importer "github.com/berth-hpc/berth/cli/import"
	"github.com/berth-hpc/berth/cli/root"
	"github.com/berth-hpc/berth/cli/sim"
	"github.com/berth-hpc/berth/cli/tools"
	"github.com/berth-hpc/berth/cli/translate"
	"github.com/berth-hpc/berth/cli/up"
	"github.com/berth-hpc/berth/internal/gen"
	"github.com/berth-hpc/berth/internal/stdio"
)

var update = flag.Bool("update", false, "write the generated files")

const top = "../.."

func files(t *testing.T) map[string]string {
	t.Helper()
	f, err := gen.Files(
		root.Command(
			stdio.System(),
			cli.Deps{},
			up.Commands,
			translate.Commands,
			sim.Commands,
			importer.Commands,
			doctor.Commands,
			events.Commands,
			export.Commands,
		),
		servers()...)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// existing returns the generated files in the repository.
func existing(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, pattern := range []string{"docs/man/*", "completions/*", "docs/authorization.md"} {
		names, err := filepath.Glob(filepath.Join(top, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range names {
			if rel, err := filepath.Rel(top, n); err == nil && filepath.Ext(n) != ".go" {
				out = append(out, filepath.ToSlash(rel))
			}
		}
	}
	return out
}

func TestFilesAreUpToDate(t *testing.T) {
	want := files(t)
	if *update {
		for _, name := range existing(t) {
			if _, ok := want[name]; !ok {
				if err := os.Remove(filepath.Join(top, name)); err != nil {
					t.Fatal(err)
				}
			}
		}
		for name, text := range want {
			path := filepath.Join(top, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, text := range want {
		if got, err := os.ReadFile(filepath.Join(top, name)); err != nil || string(got) != text {
			t.Errorf("%s is out of date (%v): run make generate", name, err)
		}
	}
	for _, name := range existing(t) {
		if _, ok := want[name]; !ok {
			t.Errorf("%s is not generated any more: run make generate", name)
		}
	}
}

// TestEveryCommandHasAPage checks that each command has a manual page.
func TestEveryCommandHasAPage(t *testing.T) {
	f := files(t)
	for _, name := range append(cli.Names(), "berth", "berth-up", "berth-down", "berth-translate", "berth-completion") {
		if text := f["docs/man/"+name+".1"]; len(text) < 300 {
			t.Errorf("%s has no page, or only a short one: %q", name, text)
		}
	}
}

// TestToolsAreNamedAsTheyNameThemselves checks that berth says of the subcommands which
// berth-tools runs what their own manual pages say.
func TestToolsAreNamedAsTheyNameThemselves(t *testing.T) {
	p := stdio.System()
	var own []*cobra.Command
	for _, commands := range []func(*stdio.Process) []*cobra.Command{
		export.Commands, importer.Commands, sim.Commands, translate.Commands,
	} {
		own = append(own, commands(p)...)
	}
	for i, c := range tools.Commands(p) {
		if i >= len(own) || c.Use != own[i].Use || c.Short != own[i].Short {
			t.Errorf("%q, %q", c.Use, c.Short)
		}
	}
}

// TestEveryServerHasAPage checks that the page of each server has its flags.
func TestEveryServerHasAPage(t *testing.T) {
	f := files(t)
	for _, s := range servers() {
		text := f["docs/man/berth-"+s.Program+".8"]
		s.Flags.VisitAll(func(flag *pflag.Flag) {
			if !strings.Contains(text, strings.ReplaceAll("--"+flag.Name, "-", `\-`)) {
				t.Errorf("the page of %s does not have --%s", s.Program, flag.Name)
			}
		})
	}
}

func TestPagesPassLint(t *testing.T) {
	mandoc, err := exec.LookPath("mandoc")
	if err != nil {
		t.Skip("mandoc is not installed")
	}
	var pages []string
	for name := range files(t) {
		if strings.HasPrefix(name, "docs/man/") {
			pages = append(pages, filepath.Join(top, name))
		}
	}
	slices.Sort(pages)
	out, err := exec.Command(mandoc, append([]string{"-T", "lint", "-W", "warning"}, pages...)...).CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("mandoc: %v\n%s", err, out)
	}
}

// TestPagesFormat formats the pages with groff and checks that it prints no warnings.
func TestPagesFormat(t *testing.T) {
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Skip("groff is not installed")
	}
	for name := range files(t) {
		if !strings.HasPrefix(name, "docs/man/") {
			continue
		}
		cmd := exec.Command(groff, "-man", "-Tutf8", "-ww", filepath.Join(top, name))
		var output strings.Builder
		cmd.Stderr = &output
		out, err := cmd.Output()
		if err != nil || output.Len() > 0 {
			t.Errorf("groff %s: %v\n%s", name, err, output.String())
		}
		if len(out) < 300 {
			t.Errorf("groff %s: only %d bytes", name, len(out))
		}
	}
}
