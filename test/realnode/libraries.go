package realnode

import (
	"context"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/berth-hpc/berth/deploy/images"
)

// libraryPath finds the paths in what ldd(1) says.
var libraryPath = regexp.MustCompile(`(?m)(/\S+) \(0x`)

// libraries returns the machine's libraries that a program is linked with: the programs
// of a release are static, but those that make build leaves may not be.
func libraries(ctx context.Context, program string) ([]images.File, error) {
	out, err := exec.CommandContext(ctx, "ldd", program).Output()
	if err != nil {
		return nil, nil //nolint:nilerr // a static one makes ldd fail
	}
	var files []images.File
	for _, m := range libraryPath.FindAllStringSubmatch(string(out), -1) {
		real, err := filepath.EvalSymlinks(m[1])
		if err != nil {
			return nil, err
		}
		files = append(files, images.File{Path: strings.TrimPrefix(m[1], "/"), From: real})
	}
	return files, nil
}
