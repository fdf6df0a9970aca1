package realnode

import (
	"context"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// libraries are the paths in what ldd(1) says.
var libraries = regexp.MustCompile(`(?m)(/\S+) \(0x`)

// makeSchedulerImage makes SchedulerImage of the binary and, where it is not
// static, the machine's libraries that it is linked with.
func makeSchedulerImage(ctx context.Context, path, binary string) error {
	files := []layerFile{{name: "scheduler", from: binary}}
	out, err := exec.CommandContext(ctx, "ldd", binary).Output()
	if err == nil { // a static one makes ldd fail
		for _, m := range libraries.FindAllStringSubmatch(string(out), -1) {
			real, err := filepath.EvalSymlinks(m[1])
			if err != nil {
				return err
			}
			files = append(files, layerFile{name: strings.TrimPrefix(m[1], "/"), from: real})
		}
	}
	layer := path + ".layer"
	if err := writeLayer(layer, files); err != nil {
		return err
	}
	return writeImage(path, SchedulerImage, []string{"/scheduler"}, layer)
}
