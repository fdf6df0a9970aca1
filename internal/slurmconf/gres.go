package slurmconf

import (
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/translate/hostlist"
)

// maxGRESNodes limits the nodes of one gres.conf.
const maxGRESNodes = 1 << 20

// ParseGRES parses the gres.conf of that name with read, including the files that it
// includes. Nodes have their counts from slurm.conf already; if the two differ, there
// is a warning. The error is an *Error, or that of read for the first file.
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
			warn(x, "AutoDetect", "device plugins find the devices of nodes here")
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
				Text:  "NodeName=" + l["nodename"] + " is no list of nodes",
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

// countInFile is Count, or the number of files.
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

// compareGRES says where slurm.conf and gres.conf do not agree.
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
					" here and "+strconv.FormatInt(have, 10)+" in slurm.conf, which is taken")
			}
		}
	}
}
