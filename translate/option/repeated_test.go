package option_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/translate/option"
)

// TestMailTypesAddUp checks that the types of several --mail-type are combined, and that
// NONE removes only those of its own value, as in Slurm 22.05.8.
func TestMailTypesAddUp(t *testing.T) {
	p := option.New(option.Sbatch)
	for _, line := range []string{"--mail-type=BEGIN", "--mail-type=END"} {
		if _, err := p.Directives([]string{line}); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.CommandLine([]string{"--mail-type=FAIL", "--mail-type=REQUEUE,NONE", "s.sh"}); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(p.Job.Mail.Types, ","); got != "BEGIN,END,FAIL" {
		t.Errorf("mail types %s", got)
	}
	if err := option.Apply(option.Sbatch, &p.Job, "mail-type", "ALL"); err != nil {
		t.Fatal(err)
	}
	if err := option.Apply(option.Sbatch, &p.Job, "mail-type", "END"); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(p.Job.Mail.Types, ","); got != "END" {
		t.Errorf("an update gives mail types %s", got)
	}
}

// TestQuietInScript checks that --quiet counts only on the command line.
func TestQuietInScript(t *testing.T) {
	p := option.New(option.Sbatch)
	if _, err := p.Directives([]string{"--parsable", "--quiet"}); err != nil {
		t.Fatal(err)
	}
	if p.Client.Quiet != 0 || !p.Client.Parsable {
		t.Errorf("in a script: quiet %d, parsable %v", p.Client.Quiet, p.Client.Parsable)
	}
	if err := p.CommandLine([]string{"--quiet", "s.sh"}); err != nil || p.Client.Quiet != 1 {
		t.Errorf("on the command line: quiet %d, %v", p.Client.Quiet, err)
	}
}

// As in Slurm 22.05.8, unknown types of mail are accepted beside known ones, with a warning
// of ours, and refused alone.
func TestUnknownMailTypes(t *testing.T) {
	for value, want := range map[string]string{
		"END,x": "[END] [warning: --mail-type: there is no type x]",
		"x,END": "[END] [warning: --mail-type: there is no type x]",
		"x":     "Invalid --mail-type specification",
		",":     "Invalid --mail-type specification",
	} {
		p := option.New(option.Sbatch)
		got := ""
		if err := p.CommandLine([]string{"--mail-type=" + value, "s.sh"}); err != nil {
			got = text(err)
		} else {
			got = fmt.Sprint(p.Job.Mail.Types, p.Warnings)
		}
		if got != want {
			t.Errorf("%s: %q, want %q", value, got, want)
		}
	}
}

// TestRepeatedNodes checks that a node may be named twice by --exclude and, for sbatch, by
// --nodelist.
func TestRepeatedNodes(t *testing.T) {
	p, err := option.Parse(option.Sbatch, []string{"-x", "n3,n4,n3", "-w", "n1,n1", "s.sh"}, nil)
	if err == nil {
		err = p.Verify()
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(p.Job.Placement.Exclude, p.Job.Placement.NodeList); got != "[n3 n4] [n1]" {
		t.Error(got)
	}
}
