package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"go.yaml.in/yaml/v3"
)

// target is the requested package; bin is the directory that has its programs.
type target struct{ id, bin, version, arch string }

// file is the part of goreleaser.yaml about packages.
type file struct {
	Builds []struct{ ID, Binary string }
	NFPMs  []map[string]any `yaml:"nfpms"`
}

// renamed maps fields of goreleaser to those of nfpm; "": nfpm has no such field.
var renamed = map[string]string{
	"id": "", "ids": "", "formats": "", "bindir": "", "package_name": "name", "dependencies": "depends",
}

// writePackage writes the nfpm.yaml of a package in the goreleaser.yaml with the given name.
func writePackage(w io.Writer, name string, t target) error {
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	var f file
	if err := yaml.Unmarshal(data, &f); err != nil {
		return err
	}
	i := slices.IndexFunc(f.NFPMs, func(p map[string]any) bool { return p["id"] == t.id })
	if i < 0 {
		return fmt.Errorf("no package %q in %s", t.id, name)
	}
	p := f.NFPMs[i]
	contents, _ := p["contents"].([]any)
	p["contents"] = append(contents, f.programs(p, t.bin)...)
	p["version"], p["arch"] = t.version, t.arch
	for old, name := range renamed {
		v, ok := p[old]
		delete(p, old)
		if ok && name != "" {
			p[name] = v
		}
	}
	return yaml.NewEncoder(w).Encode(p)
}

// programs returns the programs that goreleaser adds to the contents of package p.
func (f file) programs(p map[string]any, bin string) []any {
	var contents []any
	ids, _ := p["ids"].([]any)
	directory, _ := p["bindir"].(string)
	for _, b := range f.Builds {
		if slices.Contains(ids, any(b.ID)) {
			contents = append(contents, map[string]any{
				"src": filepath.Join(bin, b.Binary), "dst": filepath.Join(directory, b.Binary),
				"file_info": map[string]any{"mode": 0o755},
			})
		}
	}
	return contents
}
