package gpu

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// tree writes files with these contents below a new directory.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestNearNvidia(t *testing.T) {
	sys := tree(t, map[string]string{
		"bus/pci/devices/0000:3b:00.0/local_cpulist": "0-1,8\n",
		"bus/pci/devices/0001:86:00.0/local_cpulist": "4-5\n",
		"bus/pci/devices/0000:af:00.0/local_cpulist": "\n",
	})
	text := "0, 00000000:3B:00.0\n1, 00000001:86:00.0\n2, 00000000:AF:00.0\n3, 00000000:D8:00.0\n4, ../../x\n"
	want := map[int][]int{0: {0, 1, 8}, 1: {4, 5}}
	if got := nearNvidia(text, sys); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestNearRender(t *testing.T) {
	dev := tree(t, map[string]string{"dri/renderD128": "", "dri/renderD129": "", "dri/renderD130": "", "dri/card0": ""})
	sys := tree(t, map[string]string{
		"class/drm/renderD128/device/vendor": "0x1af4\n", "class/drm/renderD128/device/local_cpulist": "0-7\n",
		"class/drm/renderD129/device/vendor": "0x1002\n", "class/drm/renderD129/device/local_cpulist": "0-3\n",
		"class/drm/renderD130/device/vendor": "0x1002\n", "class/drm/renderD130/device/local_cpulist": "4-7\n",
		"class/drm/renderD131/device/vendor": "0x1002\n", "class/drm/renderD131/device/local_cpulist": "4-7\n",
	})
	want := map[int][]int{0: {0, 1, 2, 3}, 1: {4, 5, 6, 7}}
	if got := nearRender(sys, dev); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
