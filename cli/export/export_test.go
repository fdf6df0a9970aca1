package export

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/internal/stdio"
)

// lists are the responses of a cluster, by resource; others are empty.
type lists map[string]string

func (l lists) GetAll(_ context.Context, path string, into any) error {
	name := path[strings.LastIndexByte(path, '/')+1:]
	text, ok := l[name]
	if !ok {
		text = `{"kind": "List", "items": []}`
	}
	if text == "403" {
		return errors.New("forbidden")
	}
	return json.Unmarshal([]byte(text), into)
}

const partitions = `{"kind": "PartitionList", "items": [
  {"metadata": {"name": "debug", "uid": "7", "resourceVersion": "5", "generation": 2,
    "annotations": {"berth.hpc/applied": "abc", "kubectl.kubernetes.io/last-applied-configuration": "{}", "site": "x"},
    "managedFields": [
      {"manager": "berth-objects", "fieldsV1": {"f:spec": {"f:nodes": {}}}},
      {"manager": "scontrol", "fieldsV1": {"f:spec": {"f:maxTime": {}, "f:allowGroups": {".": {}, "v:\"lab\"": {}}}}},
      {"manager": "scontrol", "fieldsV1": {"f:spec": {"f:state": {}}}}]},
   "spec": {"nodes": "n[1-2]", "maxTime": 60, "state": "DRAIN", "allowGroups": ["lab"]}, "status": {"x": 1}},
  {"metadata": {"name": "long"}}]}`

const users = `{"kind": "UserList", "items": [
  {"metadata": {"name": "anna", "labels": {"berth.hpc/source": "ldap"}}, "spec": {"uid": 5}},
  {"metadata": {"name": "ben", "labels": {"team": "x"}, "managedFields": [
    {"manager": "sacctmgr", "fieldsV1": {"f:metadata": {"f:labels": {"f:team": {}}}, "f:spec": {"f:uid": {}}}}]},
    "spec": {"uid": 6}}]}`

// TestExport: what the API server adds, states and the users of a directory are left out;
// what was changed by commands is marked.
func TestExport(t *testing.T) {
	const want = `# changed with scontrol: spec.allowGroups, spec.maxTime, spec.state
apiVersion: berth.hpc/v1alpha1
kind: Partition
metadata:
  annotations:
    site: x
  name: debug
spec:
  allowGroups:
  - lab
  maxTime: 60
  nodes: n[1-2]
  state: DRAIN
---
apiVersion: berth.hpc/v1alpha1
kind: Partition
metadata:
  name: long
---
# changed with sacctmgr: metadata.labels.team, spec.uid
apiVersion: berth.hpc/v1alpha1
kind: User
metadata:
  labels:
    team: x
  name: ben
spec:
  uid: 6
`
	var out bytes.Buffer
	p := &stdio.Process{Streams: stdio.Streams{Out: &out}}
	cluster := lists{"partitions": partitions, "users": users}
	if err := run(t.Context(), p, cluster, kinds); err != nil || out.String() != want {
		t.Errorf("%v\n%s\nwant\n%s", err, out.String(), want)
	}
	out.Reset()
	if err := run(t.Context(), p, lists{"partitions": partitions, "reservations": "403"}, kinds); err == nil || out.Len() > 0 {
		t.Errorf("%v, and %d bytes were printed", err, out.Len())
	}
}

// TestSelected: kinds are named as for kubectl.
func TestSelected(t *testing.T) {
	got, err := selected([]string{"Partition", "qos", "users.berth.hpc"})
	if err != nil || !slices.Equal(got, []string{"partitions", "qos", "users"}) {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := selected([]string{"pods"}); err == nil || !strings.Contains(err.Error(), `unknown kind "pods"`) {
		t.Errorf("%v", err)
	}
}
