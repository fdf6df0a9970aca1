package env

import "testing"

// TestWorkingCluster checks the form NAME:ADDRESS:PORT:VERSION:PLUGIN of Slurm 22.05.8.
func TestWorkingCluster(t *testing.T) {
	for api, want := range map[string]string{
		"https://127.0.0.1:16817":  "ref:127.0.0.1:16817:9728:109",
		"https://queue.berth:443/": "ref:queue.berth:443:9728:109",
		"":                         "",
	} {
		if got := workingCluster("ref", api); got != want {
			t.Errorf("%q: %q, want %q", api, got, want)
		}
	}
}
