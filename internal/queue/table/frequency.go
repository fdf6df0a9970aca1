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
	case shownAs(governors, span) != "":
		return "Governor=" + shownAs(governors, span)
	default:
		out = append(out, "CPU_max_freq="+frequencyWord(span))
	}
	out = append(out, "")
	if name := shownAs(governors, governor); name != "" {
		out[len(out)-1] = "Governor=" + name
	}
	return strings.Join(out, " ")
}

// word is what is shown of the words that begin with these letters.
type word struct{ prefix, shown string }

var (
	governors = []word{
		{"co", "Conservative"}, {"onde", "OnDemand"}, {"perf", "Performance"}, {"po", "PowerSave"},
		{"user", "UserSpace"}, {"sche", "SchedUtil"},
	}
	frequencies = []word{
		{"highm1", "Highm1"}, {"him1", "Highm1"}, {"hi", "High"}, {"med", "Medium"}, {"lo", "Low"},
	}
)

// shownAs returns what is shown of s, or "" if it is none of the words.
func shownAs(words []word, s string) string {
	for _, w := range words {
		if strings.HasPrefix(strings.ToLower(s), w.prefix) {
			return w.shown
		}
	}
	return ""
}

// frequencyWord returns the name of a frequency, or its number without what follows.
func frequencyWord(s string) string {
	if name := shownAs(frequencies, s); name != "" {
		return name
	}
	return s[:len(s)-len(strings.TrimLeft(s, "0123456789"))]
}
