package format

import (
	"fmt"
	"strings"
)

// SettingsBlock returns what the commands print before a list with --verbose: each setting
// with its value, between lines of dashes. Names are padded to the given width.
func SettingsBlock(width int, settings [][2]any) string {
	const dashes = "-----------------------------\n"
	var b strings.Builder
	b.WriteString(dashes)
	for _, s := range settings {
		fmt.Fprintf(&b, "%-*v= %v\n", width, s[0], s[1])
	}
	return b.String() + dashes
}
