// Command sbom writes what a program is made of, as the program itself tells,
// in CycloneDX's form: sbom PROGRAM DOCUMENT. goreleaser.yaml runs it.
package main

import (
	"debug/buildinfo"
	"encoding/json"
	"log"
	"os"
	"path/filepath"
	"runtime/debug"
)

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: sbom PROGRAM DOCUMENT")
	}
	info, err := buildinfo.ReadFile(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	text, err := json.MarshalIndent(document(filepath.Base(os.Args[1]), info), "", "  ")
	if err == nil {
		err = os.WriteFile(os.Args[2], append(text, '\n'), 0o644)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// bom is the part of CycloneDX 1.5 that is written.
type bom struct {
	Format     string      `json:"bomFormat"`
	Spec       string      `json:"specVersion"`
	Version    int         `json:"version"`
	Metadata   metadata    `json:"metadata"`
	Components []component `json:"components"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Type    string `json:"type"`
	Ref     string `json:"bom-ref"`
	Name    string `json:"name"`
	Version string `json:"version"`
	PURL    string `json:"purl"`
}

// document lists the Go release and every module, the replacements in the place
// of what they replace.
func document(program string, info *debug.BuildInfo) bom {
	b := bom{Format: "CycloneDX", Spec: "1.5", Version: 1}
	b.Metadata.Component = of("application", info.Main.Path, info.Main.Version)
	b.Metadata.Component.Name = program
	b.Components = []component{of("library", "std", info.GoVersion)}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		b.Components = append(b.Components, of("library", m.Path, m.Version))
	}
	return b
}

func of(kind, path, version string) component {
	purl := "pkg:golang/" + path + "@" + version
	return component{Type: kind, Ref: purl, Name: path, Version: version, PURL: purl}
}
