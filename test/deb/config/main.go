// Command config prints the nfpm.yaml that one entry of goreleaser.yaml's
// section nfpms stands for, so that a package can be made and tried without a
// release:
//
//	config ID BIN-FOLDER VERSION ARCH
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: config ID BIN-FOLDER VERSION ARCH")
		os.Exit(2)
	}
	text, err := config(os.Args[1], os.Args[2], os.Args[3], os.Args[4])
	if err != nil {
		fmt.Fprintln(os.Stderr, "config:", err)
		os.Exit(1)
	}
	fmt.Print(text)
}

// release is the part of goreleaser.yaml that is read here.
type release struct {
	Builds []struct{ ID, Binary string }
	NFPMs  []map[string]any
}

func config(id, bin, version, arch string) (string, error) {
	data, err := os.ReadFile("goreleaser.yaml")
	if err != nil {
		return "", err
	}
	var r release
	if err := yaml.Unmarshal(data, &r); err != nil {
		return "", err
	}
	for _, p := range r.NFPMs {
		if p["id"] != id {
			continue
		}
		contents, _ := p["contents"].([]any)
		ids, _ := p["ids"].([]any)
		for _, b := range r.Builds {
			for _, want := range ids {
				if b.ID == want {
					contents = append(contents, map[string]any{"src": filepath.Join(bin, b.Binary), "dst": filepath.Join(p["bindir"].(string), b.Binary), "file_info": map[string]any{"mode": 0o755}})
				}
			}
		}
		p["contents"], p["name"], p["version"], p["arch"] = contents, p["package_name"], version, arch
		if d, ok := p["dependencies"]; ok {
			p["depends"] = d
		}
		for _, k := range []string{"id", "ids", "package_name", "formats", "bindir", "dependencies"} {
			delete(p, k)
		}
		out, err := yaml.Marshal(p)
		return string(out), err
	}
	return "", fmt.Errorf("no package %q in goreleaser.yaml", id)
}
