package option

import (
	"fmt"
	"strings"
)

// CompatibilityPage is docs/compatibility.md: every option of sbatch, srun and
// salloc, and what becomes of it in each.
func CompatibilityPage() string {
	var b strings.Builder
	b.WriteString(`# Compatibility

Written from the option table (translate/option); do not edit. Names are those of Slurm 22.05; a release behind a name
brought the option later, and pyxis is the plugin.

*supported*: does what it says. *warned*: accepted, and a warning says what is not done. *refused*: an error says why. Nothing is ignored without a
word. A dash: Slurm's command does not take the option either. The variables are those that the option adds to what every job's environment has.
`)
	for g := range groupCount {
		fmt.Fprintf(&b, "\n## %s\n\n| option | sbatch | srun | salloc | what it is for | in the job (SLURM_) | what is not done |\n|---|---|---|---|---|---|---|\n", groupTitles[g])
		for _, o := range table {
			if o.Group == g {
				b.WriteString(o.compatibilityRow())
			}
		}
	}
	return b.String()
}

func (o *Option) compatibilityRow() string {
	name := "`--" + o.Name + "`"
	if o.Short != 0 {
		name += fmt.Sprintf(", `-%c`", o.Short)
	}
	if o.Since != "" {
		name += " (" + o.Since + ")"
	}
	row := "| " + name
	var reasons []string
	for _, c := range []Command{Sbatch, Srun, Salloc} {
		if o.In&c == 0 {
			row += " | –"
			continue
		}
		status, reason := o.For(c)
		row += " | " + status.String()
		if reason != "" && (len(reasons) == 0 || reasons[len(reasons)-1] != reason) {
			reasons = append(reasons, reason)
		}
	}
	return row + " | " + cell(o.Help) + " | " + strings.Join(o.Sets, ", ") + " | " + cell(strings.Join(reasons, "; ")) + " |\n"
}

func cell(text string) string { return strings.ReplaceAll(text, "|", "\\|") }
