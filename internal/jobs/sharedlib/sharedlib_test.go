package sharedlib

import (
	"reflect"
	"testing"
)

func TestLibrariesOfAProgram(t *testing.T) {
	const text = "\tlinux-vdso.so.1 (0x00007ffd)\n\tlibmine.so.2 => /opt/my lib/libmine.so.2 (0x00007f1)\n" +
		"\tlibgone.so => not found\n\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f2)\n\t/lib64/ld-linux-x86-64.so.2 (0x00007f3)\n"
	want := []string{"/opt/my lib/libmine.so.2", "/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"}
	got := parseLdd(text)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%q", got)
	}
	for directories, want := range map[string][]string{
		DefaultExclude: want[:1], "none": want, "": want, "/opt": want[1:], "/op,/lib64/": want[:2],
	} {
		if left := Exclude(got, directories); !reflect.DeepEqual(left, want) {
			t.Errorf("without %q: %q", directories, left)
		}
	}
}
