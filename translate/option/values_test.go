package option_test

import (
	"testing"

	"github.com/berth-hpc/berth/translate/option"
)

// tabled are the commands with a table of options.
var tabled = []string{
	"sbatch",
	"srun",
	"salloc",
	"sacct",
	"sacctmgr",
	"sattach",
	"sbcast",
	"scancel",
	"scontrol",
	"scrontab",
	"seff",
	"sinfo",
	"sprio",
	"squeue",
	"sreport",
	"sshare",
	"strigger",
	"sdiag",
	"sstat",
	"sview",
}

// TestEveryValueHasAKind checks that values.go has the domain of each option with a value,
// even if its values are not completed.
func TestEveryValueHasAKind(t *testing.T) {
	used := map[string]bool{}
	for _, name := range tabled {
		list, _ := option.Of(name)
		if len(list) == 0 {
			t.Errorf("no options of %s", name)
		}
		for _, o := range list {
			if o.Arg == option.NoArg {
				continue
			}
			used[o.Name], used[name+" "+o.Name] = true, true
			if !option.HasValues(name, o) {
				t.Errorf("%s --%s=%s is not in values.go", name, o.Name, o.Meta)
			}
			if v := option.DomainOf(name, o); v.Kind == option.Words && len(v.Words) == 0 {
				t.Errorf("%s --%s: no words", name, o.Name)
			}
		}
	}
	for _, key := range option.ValueKeys() {
		if !used[key] {
			t.Errorf("values.go has %q, which no option is called", key)
		}
	}
}
