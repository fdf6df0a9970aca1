package history

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestParseMarks(t *testing.T) {
	line := "start at=1800000000.250000 job=7 array=5 task=2 restart=1 name=x user=anna node=n1 step=batch " +
		"proc=0 gpus=0,1 pid=9\n"
	want := Mark{Kind: "start", At: time.Unix(1_800_000_000, 250_000_000), Job: 7, Array: 5, Task: 2, Restart: 1,
		Name: "x", User: "anna", Node: "n1", Step: "batch", GPUs: "0,1", Process: 9}
	got, err := ParseMarks(line + strings.Replace(line, "start", "end exit=3", 1) + line[:40])
	if err != nil {
		t.Fatal(err)
	}
	end := want
	end.Kind, end.Exit = "end", 3
	if !reflect.DeepEqual(got, []Mark{want, end}) {
		t.Errorf("got %+v", got)
	}
	if _, err := ParseMarks("start at=soon\n"); err == nil {
		t.Error("a line without a time is accepted")
	}
}

func TestParseRecords(t *testing.T) {
	got, err := ParseRecords("5|5|x|anna|CANCELLED by 1000|0:15|Unknown|1800000000\n" +
		"8|5_3|x|anna|COMPLETED|2:0|1800000000|1800000001\n5|5_[1-2,6%2]|x|anna|PENDING|0:0|Unknown|Unknown\n")
	if err != nil {
		t.Fatal(err)
	}
	want := []Record{
		{ID: 5, Name: "x", User: "anna", State: "CANCELLED by 1000", End: time.Unix(1_800_000_000, 0)},
		{ID: 8, Array: 5, Tasks: []int{3}, Name: "x", User: "anna", State: "COMPLETED", Exit: 2,
			Start: time.Unix(1_800_000_000, 0), End: time.Unix(1_800_000_001, 0)},
		{ID: 5, Array: 5, Tasks: []int{1, 2, 6}, Name: "x", User: "anna", State: "PENDING"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
	for _, bad := range []string{"5|x\n", "x|5|x|anna|COMPLETED|0:0|1|1\n", "5|5_[a]|x|anna|COMPLETED|0:0|1|1\n"} {
		if _, err := ParseRecords(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func TestParseQueue(t *testing.T) {
	got, err := ParseQueue("5|x|PENDING|Dependency\n")
	if want := []Row{{5, "x", "PENDING", "Dependency"}}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
}
