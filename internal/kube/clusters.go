package kube

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/berth-hpc/berth/internal/stdio"
)

// sharedClusters is the directory with kubeconfigs of further clusters, for all users of the
// machine.
const sharedClusters = "/etc/berth/clusters"

// Locate returns the variables that choose the cluster of that name: of the file
// NAME.kubeconfig in ~/.config/berth/clusters or in /etc/berth/clusters, or of the context
// NAME in the kubeconfig in use. ok is false if there is none of them.
func Locate(p *stdio.Process, name string) (variables map[string]string, ok bool) {
	if name == "" || name != filepath.Base(name) {
		return nil, false
	}
	for _, dir := range clusterDirectories(p) {
		path := filepath.Join(dir, name+".kubeconfig")
		if _, err := p.ReadFile(path); err == nil {
			return map[string]string{"KUBECONFIG": path, EnvCluster: name, EnvContext: ""}, true
		}
	}
	for _, path := range inUse(p) {
		data, err := p.ReadFile(path)
		var f kubeconfigFile
		if err != nil || yaml.Unmarshal(data, &f) != nil {
			continue
		}
		if entry(f.Contexts, name) != nil {
			return map[string]string{EnvCluster: name, EnvContext: name}, true
		}
	}
	return nil, false
}

// Clusters returns the names of all clusters that Locate finds, sorted and each once.
func Clusters(p *stdio.Process) []string {
	names := map[string]bool{}
	for _, dir := range clusterDirectories(p) {
		files, _ := filepath.Glob(filepath.Join(dir, "*.kubeconfig")) // the pattern is valid
		for _, f := range files {
			names[strings.TrimSuffix(filepath.Base(f), ".kubeconfig")] = true
		}
	}
	for _, path := range inUse(p) {
		data, err := p.ReadFile(path)
		var f kubeconfigFile
		if err == nil && yaml.Unmarshal(data, &f) == nil {
			for i := range f.Contexts {
				names[f.Contexts[i].Name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// clusterDirectories returns the directories with kubeconfigs of further clusters.
func clusterDirectories(p *stdio.Process) []string {
	var out []string
	if dir := p.Env("XDG_CONFIG_HOME"); dir != "" {
		out = append(out, filepath.Join(dir, "berth", "clusters"))
	} else if home := p.Env("HOME"); home != "" {
		out = append(out, filepath.Join(home, ".config", "berth", "clusters"))
	}
	return append(out, sharedClusters)
}

// inUse returns the kubeconfigs in use, or nil in a job, which has none.
func inUse(p *stdio.Process) []string {
	if v := p.Env("KUBECONFIG"); v != "" {
		return filepath.SplitList(v)
	}
	if inJob(p) != nil {
		return nil
	}
	for _, c := range candidates(p) {
		if _, err := p.ReadFile(c.path); err == nil {
			return []string{c.path}
		}
	}
	return nil
}
