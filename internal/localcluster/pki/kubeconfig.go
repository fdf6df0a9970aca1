package pki

import (
	"encoding/base64"
	"fmt"
	"strings"
)

// Kubeconfig returns a client's configuration file: a server's URL, the CA that signed
// it, the client's own certificate, and the namespace of its context ("" for the
// default one).
func Kubeconfig(server string, caPEM []byte, client Pair, user, namespace string) []byte {
	var b strings.Builder
	e := base64.StdEncoding.EncodeToString
	fmt.Fprintf(&b, "apiVersion: v1\nkind: Config\nclusters:\n- name: berth\n  cluster:\n    server: %s\n    certificate-authority-data: %s\n", server, e(caPEM))
	fmt.Fprintf(&b, "users:\n- name: %s\n  user:\n    client-certificate-data: %s\n    client-key-data: %s\n", user,
		e(client.Cert), e(client.Key))
	fmt.Fprintf(&b, "contexts:\n- name: berth\n  context:\n    cluster: berth\n    user: %s\n", user)
	if namespace != "" {
		fmt.Fprintf(&b, "    namespace: %s\n", namespace)
	}
	b.WriteString("current-context: berth\n")
	return []byte(b.String())
}
