// Package gen generates files in the repository from the tables: the completion scripts
// of shells (completions/), the manual pages (docs/man) and the page about rights
// (docs/authorization.md). Its test compares the files, and writes them with -update
// (make generate).
package gen

import (
	"embed"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth/cli"
)

//go:embed all:scripts
var scripts embed.FS

// Files returns all generated files by path in the repository. berth is the tree of
// berth's commands, servers the programs for administrators.
func Files(berth *cobra.Command, servers ...Server) (map[string]string, error) {
	files := map[string]string{}
	names := strings.Join(append([]string{berth.Name()}, cli.Names()...), " ")
	entries, err := scripts.ReadDir("scripts")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		text, err := scripts.ReadFile("scripts/" + e.Name())
		if err != nil {
			return nil, err
		}
		files[path.Join("completions", e.Name())] = strings.ReplaceAll(string(text), "@NAMES@", names)
	}
	for _, p := range slices.Concat(slurmPages(), berthPages(berth), serverPages(servers)) {
		files[path.Join("docs/man", p.file())] = p.roff()
	}
	files[authorizationFile] = authorization()
	return files, nil
}

// sorted returns the sorted keys of m.
func sorted[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
