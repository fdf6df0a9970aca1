package sacct

import (
	"encoding/json"
	"fmt"

	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/translate/dump"
	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/status"
)

// print writes the records as one JSON or YAML document.
func (o *Options) print(list *status.RecordList) error {
	o.dump.Cluster = list.Cluster
	doc := format.AcctDocument(list.Items, &o.settings, o.dump)
	var out []byte
	var err error
	if o.dump.Syntax == dump.JSON {
		out, err = json.MarshalIndent(doc, "", "  ")
		out = append(printable.JSON(out), '\n')
	} else {
		out, err = format.AppendYAML(nil, doc)
	}
	if err != nil {
		return err
	}
	if _, err := o.p.Out.Write(out); err != nil {
		return fmt.Errorf("cannot write the list: %w", err)
	}
	return nil
}
