//go:build berthtest

package agent

import "time"

// Tests run agents on machines without the files of a pod. Only programs that are
// built with the tag read these variables, because an image could set them.
func init() {
	adjust = func(c *Config, env map[string]string) {
		for name, to := range map[string]*string{
			"BERTH_TEST_TOKEN": &c.Token, "BERTH_TEST_TERMINATION_LOG": &c.TerminationLog,
		} {
			if v := env[name]; v != "" {
				*to = v
			}
		}
		if d, err := time.ParseDuration(env["BERTH_TEST_AWAY"]); err == nil {
			c.ResumeGrace = d
		}
	}
}
