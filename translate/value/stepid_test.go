package value

import "testing"

// TestParseStepID compares arguments with the results of sbcast -j of Slurm 22.05.8.
func TestParseStepID(t *testing.T) {
	for text, want := range map[string]string{
		"12": "12", "12.0": "12.0", "12.BATCH": "12.batch", "12_3": "12_3", "12+1.2": "12+1.2", "12x": "12",
		"12.0.1": "12.0",
		"x":      "0", "": "0", ".0": "0.0", "-1": "4294967295", "99999999999": "1215752191",
		"12.x": "Bad step specified: 12", "12.": "Bad step specified: 12", "12.-1": "Bad step specified: 12",
		"12_x": "Bad job array element specified: 12",
	} {
		id, err := ParseStepID(text)
		got := id.String()
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
