package localcluster

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/internal/processnode/registration"
)

// Shape is what a later start without flags uses from the last one: the nodes, and the
// names of the machine's users.
type Shape struct {
	Nodes []Node   `json:"nodes"`
	Users []string `json:"users"`
}

// fileShape is the file with the Shape.
const fileShape = "shape.json"

// ReadShape returns the shape of the last start; the zero value if there was none.
func ReadShape(dir string) (Shape, error) {
	var s Shape
	data, err := os.ReadFile(filepath.Join(dir, fileShape))
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(data, &s)
}

func (k *cluster) writeShape() error {
	s := Shape{Nodes: k.Nodes}
	for _, u := range k.Users {
		s.Users = append(s.Users, u.Name)
	}
	return k.state.writeJSON(fileShape, s)
}

// removeOldNodes deletes the process nodes of an earlier start that do not exist any more.
// Their pods are deleted with them. Nodes that somebody else has created stay.
func (k *cluster) removeOldNodes(ctx context.Context, a *api) error {
	var have metav1.PartialObjectMetadataList
	if err := a.do(ctx, "GET", "/api/v1/nodes?labelSelector="+registration.LabelOwner, "", nil, &have); err != nil {
		return err
	}
	want := map[string]bool{}
	for _, n := range k.Nodes {
		want[n.Object()] = true
	}
	for _, n := range have.Items {
		if want[n.Name] {
			continue
		}
		if err := a.do(ctx, "DELETE", "/api/v1/nodes/"+n.Name, "", nil, nil); err != nil {
			return err
		}
	}
	return nil
}
