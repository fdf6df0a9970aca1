package table

import "strings"

// cpuFrequency returns a value of --cpu-freq as scontrol shows it: FREQUENCY, LOW-HIGH,
// either with :GOVERNOR, or a governor. A text without a governor ends with a blank.
func cpuFrequency(given string) string {
	if given == "" {
		return ""
	}
	span, governor, _ := strings.Cut(given, ":")
	low, high, ranged := strings.Cut(span, "-")
	var out []string
	switch {
	case ranged:
		out = append(out, "CPU_min_freq="+frequencyWord(low), "CPU_max_freq="+frequencyWord(high))
	case governorNames[strings.ToLower(span)] != "":
		return "Governor=" + governorNames[strings.ToLower(span)]
	default:
		out = append(out, "CPU_max_freq="+frequencyWord(span))
	}
	out = append(out, "")
	if name := governorNames[strings.ToLower(governor)]; name != "" {
		out[len(out)-1] = "Governor=" + name
	}
	return strings.Join(out, " ")
}

var governorNames = map[string]string{
	"conservative": "Conservative", "ondemand": "OnDemand", "performance": "Performance",
	"powersave": "PowerSave", "userspace": "UserSpace", "schedutil": "SchedUtil",
}

// frequencyWord returns a frequency with a capital letter, or its number.
func frequencyWord(s string) string {
	if s == "" {
		return ""
	}
	return strings.ToUpper(s[:1]) + strings.ToLower(s[1:])
}
