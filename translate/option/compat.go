package option

import (
	"fmt"
	"strings"
)

// CompatibilityPage returns docs/compatibility.md: every option of sbatch, srun and
// salloc with its status in each of them, and the changes of later releases.
func CompatibilityPage() string {
	var b strings.Builder
	b.WriteString(`# Compatibility

Generated from the tables of translate/option; do not edit. Options without a release behind their name are those of Slurm
22.05. A release is the one that added the option; pyxis is the plugin of that name.

*supported*: the option has its effect. *warned*: the option is accepted, and a warning says that it has no effect. *refused*: an error says
why. No option is ignored silently. A dash: Slurm's command does not have the option either. The variables are those that the option adds
to the environment of the job.
`)
	for g := range groupCount {
		fmt.Fprintf(&b, "\n## %s\n\n", groupTitles[g])
		b.WriteString("| option | sbatch | srun | salloc | purpose | variables in the job (SLURM_) | limitation |\n")
		b.WriteString("|---|---|---|---|---|---|---|\n")
		for _, o := range table() {
			if o.Group == g {
				b.WriteString(o.compatibilityRow())
			}
		}
	}
	b.WriteString(changesSection())
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
	for _, c := range submitCommands {
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
	cells := []string{row, cell(o.Help), strings.Join(o.Sets(), ", "), cell(strings.Join(reasons, "; "))}
	return strings.Join(cells, " | ") + " |\n"
}

func cell(text string) string { return strings.ReplaceAll(text, "|", "\\|") }
