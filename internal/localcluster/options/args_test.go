package options

import (
	"reflect"
	"testing"

	"github.com/spf13/pflag"
)

// Args returns every option, including options that are added to the struct later.
func TestArgsGiveTheOptionsAgain(t *testing.T) {
	for _, shaped := range []bool{true, false} {
		var o Options
		v := reflect.ValueOf(&o).Elem()
		for i := range v.NumField() {
			switch f := v.Field(i); f.Kind() {
			case reflect.String:
				f.SetString("a value, " + v.Type().Field(i).Name)
			case reflect.Int:
				f.SetInt(int64(100 + i))
			case reflect.Bool:
				f.SetBool(true)
			case reflect.Slice:
				f.Set(reflect.ValueOf([]string{"anna", "ben,x"}))
			default:
				t.Fatalf("%s is a %s", v.Type().Field(i).Name, f.Kind())
			}
		}
		want := o
		if o.Shaped = shaped; !shaped {
			want.Shaped, want.Nodes, want.CPUs, want.Memory, want.GPUs = false, 3, 0, "", 0
		}
		var again Options
		var fs pflag.FlagSet
		again.AddRun(&fs)
		if err := fs.Parse(o.Args()); err != nil {
			t.Fatal(err)
		}
		if again.RecordShaped(&fs); !reflect.DeepEqual(again, want) {
			t.Errorf("shaped %v: %+v, want %+v", shaped, again, want)
		}
	}
}
