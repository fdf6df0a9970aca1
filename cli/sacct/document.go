package sacct

import (
	"encoding/json"
	"fmt"

	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/status"
)

// print writes the records as one JSON or YAML document.
func (o *Options) print(list *status.RecordList) error {
	doc := format.AcctDocument(list.Items, &o.settings)
	var out []byte
	var err error
	if o.document == "json" {
		out, err = json.MarshalIndent(doc, "", "  ")
		out = append(out, '\n')
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
