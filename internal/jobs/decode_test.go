package jobs

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/berth-hpc/berth/translate/status"
)

// FuzzDecode compares the fast decoder with encoding/json.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		`{"kind":"JobList","apiVersion":"v","time":5,"items":[{"id":1,"name":"a","requeue":true,"timeLimit":-1},{"id":2,"name":"a","contiguous":false}]}`,
		`{"items":[{"name":"q\"\u00fc\\","user":"ü"}]}`, `{"items":[]}`, `{"items":null}`, `{}`, ` { "items" : [ { "id" : 1 } ] } `,
		`{"items":[{"unknown":{"a":[1]}}]}`, `{"items":[{"nodes":99999999999}]}`, `{"items":[{"id":1.5}]}`, `{"items":[{"id":"x"}]}`,
		`{"items":[{"id":1}`, `{"items":[{"id":1}]}x`, `[]`, ``, `{"items":[{"name":"a\`, `{"items":[{"id":01}]}`, `{"items":[{"ID":1}]}`,
		`{"items":[{"id":1}],"items":[{"name":"b"}]}`, `{"items":[{"id":null}]}`, "{\"items\":[{\"name\":\"\xff\"}]}", `{"items":[{"requeue":trueish}]}`,
		"{}\x00", "{\"items\":[{}\x00]}", `{"unknownUsers":[]}`, `{"unknownUsers":["a",]}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var fast jobList
		var plain status.JobList
		errFast, errPlain := fast.Decode([]byte(s)), json.Unmarshal([]byte(s), &plain)
		if (errFast == nil) != (errPlain == nil) {
			t.Fatalf("%q: %v, encoding/json: %v", s, errFast, errPlain)
		}
		if errPlain == nil && !reflect.DeepEqual(status.JobList(fast), plain) {
			t.Errorf("%q:\n%+v\n%+v", s, fast, plain)
		}
	})
}
