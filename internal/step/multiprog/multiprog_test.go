package multiprog

import (
	"reflect"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	list, err := Parse("f", "# comment\n\n0-1,3 echo task:%t 'two words' \"a\nb*\n")
	if list != nil || err == nil || err.Error() != "Line 4 of configuration file f invalid" {
		t.Errorf("%v, %v; want line 4 to be invalid: it has one word", list, err)
	}
	list, err = Parse("f", "0-1,3 echo %t.%o 'two words' a\\ b \\\n\"c\n* true\n")
	want := []Program{
		{Line: 1, Tasks: []TaskRange{{0, 1}, {3, 3}}, Args: []string{"echo", "%t.%o", "two words", "a b", `"c`}},
		{Line: 2, Args: []string{"true"}},
	}
	if err != nil || !reflect.DeepEqual(list, want) {
		t.Errorf("%+v, %v; want %+v", list, err, want)
	}
	// A backslash at the end of a line joins it with the next one, as in Slurm 22.05.8.
	list, err = Parse("f", "0 echo a\\\nb\n")
	if err != nil || len(list) != 1 || !reflect.DeepEqual(list[0].Args, []string{"echo", "ab"}) {
		t.Errorf("%+v, %v; want echo ab", list, err)
	}
	list, _ = Parse("f", "0-1,3 true\n")
	if last := LastTask(list); last != 3 {
		t.Errorf("last task %d, want 3", last)
	}
}

func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":            "Configuration file f invalid, no record for task id 0",
		"# nothing\n": "Configuration file f invalid, no record for task id 0",
		"-1 true":     "Invalid task id, -1 < 0|Line 1 of configuration file f invalid",
		"x true":      "Invalid task range specification (x)|Line 1 of configuration file f invalid",
		"\n3-1 true":  "Invalid task range, 3-1|Line 2 of configuration file f invalid",
	} {
		_, err := Parse("f", text)
		if err == nil || strings.ReplaceAll(err.Error(), "\n", "|") != want {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestCommand(t *testing.T) {
	list, err := Parse("f", "2,4-5 own %t %o\n* rest %t %o\n")
	if err != nil {
		t.Fatal(err)
	}
	for task, want := range map[uint32]string{2: "own 2 0 x", 5: "own 5 2 x", 3: "rest 3 3 x"} {
		if got := strings.Join(Command(list, task, []string{"x"}), " "); got != want {
			t.Errorf("task %d: %q, want %q", task, got, want)
		}
	}
	if got := Command(list[:1], 3, nil); got != nil {
		t.Errorf("a task without a line executes %q", got)
	}
}

func TestCheck(t *testing.T) {
	for text, want := range map[string]string{
		"0-1 true":            "",
		"0 true\n* true":      "",
		"0-2 true":            "Invalid task id, 2 >= ntasks|Line 1 of configuration file f invalid",
		"0-1 true\n1 true":    "Duplicate record for task 1|Line 2 of configuration file f invalid",
		"0 true":              "Configuration file f invalid, no record for task id 1",
		"1 true\n# 0\n0 true": "",
	} {
		list, err := Parse("f", text)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(Check("f", list, 2), "|"); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
