//go:build !linux

package stdio

import "os"

// terminalWidth is not known here.
func terminalWidth(*os.File) int { return 0 }
