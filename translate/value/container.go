package value

import (
	"fmt"
	"path"
	"regexp"
	"strings"
	"sync"
)

// reference matches an image reference with registry and tag or digest.
var reference = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@-]*[A-Za-z0-9]$|^[A-Za-z0-9]$`)
})

// Image returns the Kubernetes image reference for a value of pyxis's
// --container-image: [USER@][REGISTRY#]NAME[:TAG] with an optional docker://. Files
// (squashfs images) are an error.
func Image(s string) (string, error) {
	ref := strings.TrimPrefix(s, "docker://")
	if strings.HasPrefix(ref, "/") || strings.HasPrefix(ref, ".") || strings.HasSuffix(ref, ".sqsh") {
		return "", fmt.Errorf("%s is a file; only images in a registry are supported", s)
	}
	if strings.Contains(ref, "://") {
		return "", fmt.Errorf("invalid image %q", s)
	}
	user, rest, found := strings.Cut(ref, "@")
	if found && !strings.Contains(user, "/") && !strings.HasPrefix(rest, "sha256:") {
		return "", fmt.Errorf("credentials come from the cluster, not from %q", s)
	}
	ref = strings.Replace(ref, "#", "/", 1)
	if !reference().MatchString(ref) || strings.Contains(ref, "//") {
		return "", fmt.Errorf("invalid image %q", s)
	}
	return ref, nil
}

// Mount is one entry of pyxis's --container-mounts.
type Mount struct {
	Source, Target string // absolute, clean
	ReadOnly       bool
}

// Mounts parses SRC[:DST[:FLAGS]],... Flags are separated by plus signs: ro, rw, and
// flags of mount(2) that are ignored.
func Mounts(s string) ([]Mount, error) {
	var out []Mount
	for item := range strings.SplitSeq(s, ",") {
		parts := strings.Split(item, ":")
		m := Mount{Source: parts[0], Target: parts[0]}
		if len(parts) > 1 {
			m.Target = parts[1]
		}
		if len(parts) > 3 || !path.IsAbs(m.Source) || !path.IsAbs(m.Target) {
			return nil, fmt.Errorf("invalid mount %q", item)
		}
		if len(parts) == 3 {
			for f := range strings.SplitSeq(parts[2], "+") {
				switch f {
				case "ro":
					m.ReadOnly = true
				case "rw", "rprivate", "private", "rslave", "slave", "rbind", "bind",
					"x-create=dir", "x-create=file", "x-create=auto":
				default:
					return nil, fmt.Errorf("invalid flag %q in mount %q", f, item)
				}
			}
		}
		m.Source, m.Target = path.Clean(m.Source), path.Clean(m.Target)
		out = append(out, m)
	}
	return out, nil
}

// FormatMounts formats mounts in the syntax of Mounts.
func FormatMounts(list []Mount) string {
	parts := make([]string, len(list))
	for i, m := range list {
		parts[i] = m.Source + ":" + m.Target
		if m.ReadOnly {
			parts[i] += ":ro"
		}
	}
	return strings.Join(parts, ",")
}
