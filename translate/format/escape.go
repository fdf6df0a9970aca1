package format

import "github.com/berth-hpc/berth/internal/printable"

// Escape replaces characters that could control a terminal or break a line (control
// characters, bidirectional overrides, bytes that are not UTF-8) by \xNN or \uNNNN.
func Escape(s string) string { return printable.Escape(s) }
