//go:build berthtest

package agent

import "time"

// Tests run agents on a machine that has no pod's files. Only programs that are
// built with the tag read these variables: an image could set them.
func init() {
	adjust = func(c *Config, env map[string]string) {
		for name, to := range map[string]*string{"BERTH_TEST_TOKEN": &c.Token, "BERTH_TEST_TERMINATION_LOG": &c.TerminationLog} {
			if v := env[name]; v != "" {
				*to = v
			}
		}
		if d, err := time.ParseDuration(env["BERTH_TEST_AWAY"]); err == nil {
			c.Away = d
		}
	}
}
