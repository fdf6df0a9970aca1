package value

import "testing"

// memBindCases are values and the result of srun 22.05.8: SLURM_MEM_BIND without
// "quiet,", or the error.
var memBindCases = []struct{ given, shown, message string }{
	{given: "mask_mem:0xA", shown: "mask_mem:A"},
	{given: "mask_mem:A", shown: "mask_mem:A"},
	{given: "mask_mem:a,b", shown: "mask_mem:a,b"},
	{given: "MASK_MEM:aB,0xC", shown: "mask_mem:aB,C"},
	{given: "mask_mem:,1", shown: "mask_mem:1"},
	{given: "mask_mem:1,,2", shown: "mask_mem:1,2"},
	{given: "mask_mem:1,p", shown: "prefer,mask_mem:1"},
	{given: "mask_mem:1,b,p", shown: "prefer,mask_mem:1,b"},
	{given: "mask_mem:0x1*2", shown: "mask_mem:1,1"},
	{given: "mask_mem:0xF*2,1", shown: "mask_mem:F,F,1"},
	{given: "mask_mem:1,a1,none", shown: "none"},
	{given: "map_mem:1*2", shown: "map_mem:1,1"},
	{given: "map_mem:1,,", shown: "map_mem:1"},
	{given: "mask_mem:0,0XA", message: "Failed to validate number: 0XA, the offending character is X"},
	{given: "p,mask_mem:0x0,0XA", message: "Failed to validate number: 0XA, the offending character is X"},
	{given: "map_mem:0xA", message: "Failed to validate number: 0xA, the offending character is x"},
	{given: "map_mem:1a", message: "Failed to validate number: 1a, the offending character is a"},
	{given: "map_mem:1-2", message: "Failed to validate number: 1-2, the offending character is -"},
	{given: "map_mem:1*", message: "Invalid map_mem multiplier: "},
	{given: "map_mem:1*0", message: "Invalid map_mem multiplier: 0"},
	{given: "map_mem:1*2*3", message: "Failed to validate number: *2*3, the offending character is *"},
	{given: "mask_mem:1*,2", message: "Invalid mask_mem multiplier: "},
	{given: "map_mem:", message: `missing list for "--mem-bind=map_mem:<list>"`},
	// Slurm accepts an empty list.
	{given: "mask_mem:,", message: `missing list for "--mem-bind=mask_mem:<list>"`},
	{given: "map_mem:0,x", message: `unrecognized --mem-bind argument "x"`},
	{given: "mask_mem:1,verbose,2", message: `unrecognized --mem-bind argument "verbose,2"`},
	{given: "local,1", message: `unrecognized --mem-bind argument "local,1"`},
	{given: "local,b", message: `unrecognized --mem-bind argument "local,b"`},
	{given: "local:1", message: `unrecognized --mem-bind argument "local:1"`},
	{given: "local,", message: `unrecognized --mem-bind argument "local,"`},
	{given: ",local", message: `unrecognized --mem-bind argument ""`},
	{given: "v:1", message: `unrecognized --mem-bind argument "v:1"`},
	{given: "", message: `unrecognized --mem-bind argument ""`},
	{given: ",", message: `unrecognized --mem-bind argument ","`},
}

func TestMemBind(t *testing.T) {
	for _, c := range memBindCases {
		shown, err := MemBind(c.given)
		if shown != c.shown || message(err) != c.message {
			t.Errorf("--mem-bind=%s: %q, %q; want %q, %q", c.given, shown, message(err), c.shown, c.message)
		}
	}
}

func TestCPUBind(t *testing.T) {
	for given, want := range map[string]string{
		"mask_cpu:A,B":         "",
		"mask_cpu:a,b,verbose": "",
		"mask_cpu:,1":          "",
		"mask_cpu:1,,2":        "",
		"mask_cpu:0x1*2":       "",
		"MAP_CPU:0":            "",
		"map_cpu:0,,":          "",
		"map_cpu:0*2,1*3":      "",
		"map_cpu:0x1":          "Failed to validate number: 0x1, the offending character is x",
		"map_cpu:0XA":          "Failed to validate number: 0XA, the offending character is X",
		"map_cpu:A":            "Failed to validate number: A, the offending character is A",
		"map_cpu:0,1,b,c,":     "Failed to validate number: b, the offending character is b",
		"map_cpu:1*x":          "Failed to validate number: *x, the offending character is x",
		"map_cpu:*":            "Invalid map_cpu multiplier: ",
		"mask_cpu:0XA":         "Failed to validate number: 0XA, the offending character is X",
		"mask_cpu:0xAg":        "Failed to validate number: Ag, the offending character is g",
		"mask_cpu:+1":          "Failed to validate number: +1, the offending character is +",
		"mask_cpu:":            `missing list for "--cpu-bind=mask_cpu:<list>"`,
		"cores,1":              `unrecognized --cpu-bind argument "cores,1"`,
		"cores,b":              `unrecognized --cpu-bind argument "cores,b"`,
		"cores:1":              `unrecognized --cpu-bind argument "cores:1"`,
		"core,,":               `unrecognized --cpu-bind argument "core,,"`,
		"verbose,,map_cpu:0":   `unrecognized --cpu-bind argument "verbose,"`,
		",cores":               `unrecognized --cpu-bind argument ""`,
		"":                     `unrecognized --cpu-bind argument ""`,
	} {
		if got := message(CPUBind(given)); got != want {
			t.Errorf("--cpu-bind=%s: %q; want %q", given, got, want)
		}
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
