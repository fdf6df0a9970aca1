package pki

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/berth-hpc/berth/internal/wire"
)

// Direct is a way to the API server without TLS. The zero value is none.
type Direct struct {
	Socket string // path of a Unix socket
	Token  string // by which the server knows the user there
}

// Kubeconfig returns a client's configuration file: a server's URL, the CA that signed
// it, the client's own certificate, the namespace of its context ("" for the
// default one), and a socket of the server.
func Kubeconfig(server string, caPEM []byte, client Pair, user, namespace string, direct Direct) []byte {
	e := base64.StdEncoding.EncodeToString
	credentials := fmt.Sprintf("client-certificate-data: %s\n    client-key-data: %s\n", e(client.Cert), e(client.Key))
	if direct.Token != "" {
		credentials += "    token: " + direct.Token + "\n"
	}
	return kubeconfig(server, caPEM, credentials, user, namespace, direct.Socket)
}

// Kubeconfig returns a client's configuration file that names the files of the certificate
// NAME, so that a long-running client uses the renewed one.
func (s *Store) Kubeconfig(server, name, user, namespace string) []byte {
	return kubeconfig(server, s.CA.CertPEM, fmt.Sprintf("client-certificate: %s\n    client-key: %s\n",
		s.Path(name+".crt"), s.Path(name+".key")), user, namespace, "")
}

func kubeconfig(server string, caPEM []byte, client, user, namespace, socket string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: v1\nkind: Config\nclusters:\n- name: berth\n  cluster:\n    server: %s\n    certificate-authority-data: %s\n",
		server, base64.StdEncoding.EncodeToString(caPEM))
	if socket != "" { // quoted as in JSON, which YAML can read
		fmt.Fprintf(&b, "    extensions:\n    - name: %s\n      extension:\n        path: %q\n",
			wire.SocketExtension, socket)
	}
	fmt.Fprintf(&b, "users:\n- name: %s\n  user:\n    %s", user, client)
	fmt.Fprintf(&b, "contexts:\n- name: berth\n  context:\n    cluster: berth\n    user: %s\n", user)
	if namespace != "" {
		fmt.Fprintf(&b, "    namespace: %s\n", namespace)
	}
	b.WriteString("current-context: berth\n")
	return []byte(b.String())
}
