package chart

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/berth-hpc/berth/internal/sched/usersync"
)

// TestDirectory: the scheduler accepts the configuration that the chart makes of its values,
// with the paths of the Secret and the authorities.
func TestDirectory(t *testing.T) {
	values := filepath.Join(t.TempDir(), "values.yaml")
	text := `
directory:
  enabled: true
  bindPasswordSecret: {name: berth-ldap, key: pw}
  ca: "PEM"
  files: {users.yaml: "users: []\n"}
  config:
    sources:
    - name: ldap
      ldap: {urls: [ldaps://ldap.example.org], bindDN: cn=x, users: {base: "ou=people"}}
    - name: open
      ldap: {urls: [ldaps://ldap.example.org], users: {base: "ou=people"}, caFile: /own/ca.crt}
    - name: file
      file: {path: users.yaml}
    uids: {min: 10000, max: 59999}
`
	if err := os.WriteFile(values, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, output, err := template(t, "--values", values)
	if err != nil {
		t.Fatal(err, output)
	}
	m := &corev1.ConfigMap{}
	for _, doc := range strings.Split(out, "\n---\n") {
		if strings.Contains(doc, "name: berth-directory-config") && strings.Contains(doc, "kind: ConfigMap") {
			if err := yaml.Unmarshal([]byte(doc), m); err != nil {
				t.Fatal(err)
			}
		}
	}
	dir := t.TempDir()
	for name, data := range m.Data {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := usersync.ReadConfig(filepath.Join(dir, "directory.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	first, second := c.Sources[0].LDAP, c.Sources[1].LDAP
	if first.BindPasswordFile != "/etc/berth/directory-secret/pw" || first.CAFile != "/etc/berth/directory/ca.crt" ||
		second.BindPasswordFile != "" || second.CAFile != "/own/ca.crt" ||
		c.Sources[2].File.Path != filepath.Join(dir, "users.yaml") || c.UIDs.Min != 10000 {
		t.Errorf("%+v %+v %+v", first, second, c)
	}
	for _, want := range []string{
		"- --directory=/etc/berth/directory/directory.yaml", "secretName: berth-ldap", "mountPath: /etc/berth/directory-secret",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the deployment has no %s", want)
		}
	}
}
