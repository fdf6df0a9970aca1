package slurmconf

import (
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/translate/hostlist"
)

// maxGRESNodes limits the number of node names in a gres.conf, for all lines together.
const maxGRESNodes = 1 << 20

// ParseGRES compares a gres.conf, with the files that it includes, with the GRES that
// slurm.conf gave the nodes in config, and adds a warning to config for each difference.
// The counts of slurm.conf apply. The error is an *Error, or that of read for the
// first file.
func ParseGRES(file string, read func(path string) ([]byte, error), config *Config) error {
	p := &parser{read: read, cluster: config.Cluster.ClusterName}
	lines, err := p.lines(file, 0)
	if err != nil {
		return err
	}
	byName := map[string]*Node{}
	for i := range config.Nodes {
		byName[config.Nodes[i].Name] = &config.Nodes[i]
	}
	warn := func(at line, key, text string) {
		config.Warnings = append(config.Warnings, Warning{File: at.file, Line: at.number, Key: key, Text: text})
	}
	found := map[string]map[string]int64{} // node -> name:type -> count
	names := 0
	for _, x := range lines {
		all, err := pairs(x)
		if err != nil {
			return err
		}
		l := map[string]string{}
		for _, kv := range all {
			l[strings.ToLower(kv.key)] = kv.value
		}
		if l["autodetect"] != "" {
			warn(x, "AutoDetect", "ignored; device plugins detect the devices of nodes")
		}
		if l["name"] == "" {
			continue
		}
		count, err := countInFile(l)
		if err != nil {
			return x.wrap(err)
		}
		nodes := []string{}
		if l["nodename"] == "" {
			for _, n := range config.Nodes {
				nodes = append(nodes, n.Name)
			}
		} else if nodes, err = hostlist.Expand(l["nodename"]); err != nil {
			return &Error{
				File:  x.file,
				Line:  x.number,
				Text:  "NodeName=" + l["nodename"] + " is not a node list",
				Cause: err,
			}
		}
		if names += len(nodes); names > maxGRESNodes {
			return x.errorf("too many nodes")
		}
		for _, n := range nodes {
			if found[n] == nil {
				found[n] = map[string]int64{}
			}
			found[n][l["name"]+":"+l["type"]] += count
		}
	}
	compareGRES(line{file: file}, found, byName, warn)
	return nil
}

// countInFile returns the count of a line: Count, or the number of device files, or 1.
func countInFile(l map[string]string) (int64, error) {
	if text := l["count"]; text != "" {
		return strconv.ParseInt(text, 10, 64)
	}
	if text := l["file"]; text != "" {
		files, err := hostlist.Expand(text)
		return int64(len(files)), err
	}
	return 1, nil
}

// compareGRES warns about each difference between gres.conf and slurm.conf. found holds
// the counts of gres.conf by node and by "name:type".
func compareGRES(at line, found map[string]map[string]int64, nodes map[string]*Node, warn func(line, string, string)) {
	for name, all := range found {
		n := nodes[name]
		if n == nil {
			warn(at, "NodeName", "node "+name+" is not in slurm.conf")
			continue
		}
		for key, count := range all {
			gres, kind, _ := strings.Cut(key, ":")
			var have int64
			for _, g := range n.GRES {
				if g.Name == gres && (g.Type == kind || g.Type == "" || kind == "") {
					have += g.Count
				}
			}
			if have != count {
				warn(at, "Name", "node "+name+" has "+strconv.FormatInt(count, 10)+" of "+strings.TrimSuffix(key, ":")+
					" in gres.conf and "+strconv.FormatInt(have, 10)+" in slurm.conf; slurm.conf applies")
			}
		}
	}
}
