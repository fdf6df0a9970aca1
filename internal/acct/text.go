package acct

import (
	"strconv"
	"strings"
)

// clean takes out what PostgreSQL's text cannot hold (NUL, bytes that are no
// UTF-8), so that no name can keep a record from being stored.
func clean(s string) string {
	if strings.IndexByte(s, 0) >= 0 {
		s = strings.ReplaceAll(s, "\x00", "")
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// TRES reads a list such as "billing=1,cpu=2,mem=1500M,gres/gpu:a100=1":
// memory in MiB, the rest as counts. What cannot be read is left out.
func TRES(list string) map[string]int64 {
	out := map[string]int64{}
	for item := range strings.SplitSeq(list, ",") {
		name, text, ok := strings.Cut(item, "=")
		if !ok {
			continue
		}
		if n, ok := amount(name, text); ok {
			out[name] = n
		}
	}
	return out
}

func amount(name, text string) (int64, bool) {
	factor := 1.0
	if name == "mem" || name == "vmem" {
		for i, unit := range [...]string{"K", "M", "G", "T", "P"} {
			if rest, ok := strings.CutSuffix(text, unit); ok {
				factor = [...]float64{1.0 / 1024, 1, 1024, 1024 * 1024, 1024 * 1024 * 1024}[i]
				text = rest
				break
			}
		}
	}
	f, err := strconv.ParseFloat(text, 64)
	return int64(f * factor), err == nil
}
