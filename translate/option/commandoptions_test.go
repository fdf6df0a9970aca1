package option_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/translate/option"
)

// TestCommandsReportOptionsWithoutEffect checks in the source of each command that it
// reports options that are refused or have no effect.
func TestCommandsReportOptionsWithoutEffect(t *testing.T) {
	for _, s := range []*option.CommandOptions{option.Sacct, option.Sacctmgr, option.Scancel, option.Scontrol, option.Scrontab, option.Strigger, option.Sdiag,
		option.Sinfo, option.Sprio, option.Squeue, option.Sview, option.Sattach, option.Sbcast, option.Sshare, option.Seff, option.Sreport} {
		directory := s.Name
		if s == option.Sview {
			directory = "squeue"
		}
		var source strings.Builder
		files, _ := filepath.Glob(filepath.Join("../../cli", directory, "*.go"))
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			source.Write(text)
		}
		for _, o := range s.List() {
			call := map[option.Status]string{option.Refused: ".Refused(v)", option.Warned: ".Warnings(v)"}[o.Status]
			if !strings.Contains(source.String(), call) && !strings.Contains(source.String(), ".ParseAndReport(") {
				t.Errorf("%s --%s is %v, and cli/%s never calls %s", s.Name, o.Name, o.Status, directory, call)
			}
		}
	}
}
