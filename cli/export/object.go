package export

import (
	"maps"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/wire"
)

// member returns a member of an object that is an object itself; nil: there is none.
func member(o map[string]any, name string) map[string]any {
	m, _ := o[name].(map[string]any)
	return m
}

// label returns the value of a label; "": the object does not have it.
func label(o map[string]any, name string) string {
	text, _ := member(member(o, "metadata"), "labels")[name].(string)
	return text
}

// stripped returns what somebody wrote of an object of the kind: its name, labels,
// annotations and spec.
func stripped(o map[string]any, kind string) map[string]any {
	metadata := map[string]any{"name": member(o, "metadata")["name"]}
	for _, name := range []string{"labels", "annotations"} {
		kept := maps.Clone(member(member(o, "metadata"), name))
		for k := range kept {
			if k == wire.AnnotationApplied || strings.HasPrefix(k, "kubectl.kubernetes.io/") {
				delete(kept, k)
			}
		}
		if len(kept) > 0 {
			metadata[name] = kept
		}
	}
	out := map[string]any{"apiVersion": v1alpha1.GroupVersion.String(), "kind": kind, "metadata": metadata}
	if spec := member(o, "spec"); spec != nil {
		out["spec"] = spec
	}
	return out
}

// changedByCommands returns comment lines with the fields that were changed with scontrol
// or sacctmgr; "": none was.
func changedByCommands(o map[string]any) string {
	var b strings.Builder
	entries, _ := member(o, "metadata")["managedFields"].([]any)
	for _, command := range []string{wire.FieldManagerScontrol, wire.FieldManagerSacctmgr} {
		fields := map[string]bool{}
		for _, e := range entries {
			if m, _ := e.(map[string]any); m["manager"] == command {
				leaves("", member(m, "fieldsV1"), fields)
			}
		}
		if len(fields) > 0 {
			list := strings.Join(slices.Sorted(maps.Keys(fields)), ", ")
			b.WriteString("# changed with " + command + ": " + list + "\n")
		}
	}
	return b.String()
}

// leaves adds the paths of the fields in a FieldsV1 (the names that begin with "f:").
// Elements of lists are not told apart.
func leaves(path string, fields map[string]any, into map[string]bool) {
	deeper := false
	for k, v := range fields {
		name, ok := strings.CutPrefix(k, "f:")
		if !ok {
			continue
		}
		deeper = true
		sub, _ := v.(map[string]any)
		leaves(strings.TrimPrefix(path+"."+name, "."), sub, into)
	}
	if !deeper && path != "" {
		into[path] = true
	}
}
