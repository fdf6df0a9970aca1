package option_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/translate/option"
)

// byName returns the option of a command, or nil if it has none of that name.
func byName(command, name string) *option.Option {
	list, _ := option.Of(command)
	for _, o := range list {
		if o.Name == name {
			return o
		}
	}
	return nil
}

// TestChangesAgreeWithTheOptions compares the table of changes with the option tables:
// an option that is supported, warned about or refused exists in all of its commands
// with that status, and one that is not followed exists in none.
func TestChangesAgreeWithTheOptions(t *testing.T) {
	for _, c := range option.Changes() {
		if c.Option == "" {
			continue
		}
		for command := range strings.SplitSeq(c.Command, ",") {
			o := byName(command, c.Option)
			switch {
			case c.State == option.ChangeAbsent:
				if o != nil {
					t.Errorf("%s --%s exists, but the table of changes says %q", command, c.Option, c.State)
				}
				continue
			case o == nil:
				t.Errorf("%s --%s does not exist, but the table of changes says %q", command, c.Option, c.State)
				continue
			case o.Since != "" && o.Since != c.Release:
				t.Errorf("%s --%s is of %s, but the table of changes says %s", command, c.Option, o.Since, c.Release)
			}
			if status, _ := o.StatusIn(command); status.String() != string(c.State) {
				t.Errorf("%s --%s is %s, but the table of changes says %s", command, c.Option, status, c.State)
			}
		}
	}
}

// TestLaterOptionsAreInTheTableOfChanges finds options of later releases that the table
// of changes lacks, and releases out of order.
func TestLaterOptionsAreInTheTableOfChanges(t *testing.T) {
	release := regexp.MustCompile(`^\d\d\.\d\d$`)
	named := map[string]bool{}
	var releases []string
	for _, c := range option.Changes() {
		releases = append(releases, c.Release)
		for command := range strings.SplitSeq(c.Command, ",") {
			named[command+" --"+c.Option+" "+c.Release] = true
		}
	}
	if !slices.IsSorted(releases) {
		t.Errorf("the releases are not in order: %v", releases)
	}
	for _, command := range []string{
		"sbatch", "srun", "salloc", "squeue", "sinfo", "sacct", "scancel", "scontrol", "sacctmgr", "sprio", "sshare", "sdiag",
	} {
		list, _ := option.Of(command)
		for _, o := range list {
			if row := command + " --" + o.Name + " " + o.Since; release.MatchString(o.Since) && !named[row] {
				t.Errorf("%s is missing in the table of changes", row)
			}
		}
	}
}
