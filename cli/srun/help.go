package srun

import (
	"fmt"
	"io"

	"github.com/berth-hpc/berth/translate/option"
)

// usage is the first line of the help text.
const usage = "Usage: srun [OPTIONS...] executable [args...]\n"

// help lists the options of srun.
func help(w io.Writer) {
	fmt.Fprint(w, usage)
	for _, o := range option.Table() {
		if status, _ := o.For(option.Srun); o.In&option.Srun == 0 || status == option.Refused {
			continue
		}
		name := "    --" + o.Name
		if o.Short != 0 {
			name = fmt.Sprintf("-%c, --%s", o.Short, o.Name)
		}
		if o.Arg != option.NoArg {
			name += "=" + o.Meta
		}
		fmt.Fprintf(w, "  %-34s %s\n", name, o.Help)
	}
}
