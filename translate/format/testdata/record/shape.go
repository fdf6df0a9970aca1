package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/translate/format/testdata/shape"
)

// shapes writes into a directory which members the commands' documents have, of
// which kinds. What the files say already is kept: run it on clusters with
// jobs of many sorts.
func shapes(directory string) {
	ids := strings.Join(strings.Fields(run("squeue", "-h", "-a", "-t", "all", "-o", "%A").Out), ",")
	for name, args := range map[string][]string{"squeue": {"squeue", "--json", "-t", "all"}, "sinfo": {"sinfo", "--json"}, "sacct": {"sacct", "-a", "-D", "-j", ids, "--json"}} {
		file := filepath.Join(directory, name+"-22.05.8.txt")
		old, err := os.ReadFile(file)
		if err != nil && !os.IsNotExist(err) {
			log.Fatal(err)
		}
		all := shape.Parse(string(old))
		var doc any
		d := json.NewDecoder(strings.NewReader(run(args...).Out))
		d.UseNumber()
		if err := d.Decode(&doc); err != nil {
			log.Fatalf("%v: %v", args, err)
		}
		all.Add("", doc)
		var paths []string
		for path := range all {
			paths = append(paths, path)
		}
		slices.Sort(paths)
		var b bytes.Buffer
		for _, path := range paths {
			fmt.Fprintf(&b, "%s %s\n", path, all[path])
		}
		if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
			log.Fatal(err)
		}
	}
}
