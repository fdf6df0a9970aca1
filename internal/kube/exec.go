package kube

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/berth-hpc/berth/internal/stdio"
)

// ExecConfig is a kubeconfig's credential plugin: a program that prints an
// ExecCredential (client.authentication.k8s.io).
type ExecConfig struct {
	APIVersion string   `json:"apiVersion"`
	Command    string   `json:"command"`
	Args       []string `json:"args"`
	Env        []struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	} `json:"env"`
	InstallHint string `json:"installHint"`
}

type execCredential struct {
	Status struct {
		Token string `json:"token"`
		Cert  string `json:"clientCertificateData"`
		Key   string `json:"clientKeyData"`
	} `json:"status"`
}

// runExec asks the credential plugin once; a command does not live long enough
// for the credential to expire.
func (c *Config) runExec(p *stdio.Process) error {
	e := c.Exec
	name := e.Command
	if strings.Contains(name, "/") && !filepath.IsAbs(name) {
		name = filepath.Join(filepath.Dir(c.Source), name)
	}
	cmd := exec.Command(name, e.Args...)
	cmd.Env = p.Environ()
	for _, v := range e.Env {
		cmd.Env = append(cmd.Env, v.Name+"="+v.Value)
	}
	cmd.Env = append(cmd.Env, fmt.Sprintf(
		`KUBERNETES_EXEC_INFO={"apiVersion":%q,"kind":"ExecCredential","spec":{"interactive":false}}`, e.APIVersion))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, p.Err
	if err := cmd.Run(); err != nil {
		return &Error{Kind: BadConfig, Cause: err, Message: strings.TrimSpace(fmt.Sprintf(
			"kubeconfig %s: credential plugin %s: %v. %s", c.Source, e.Command, err, e.InstallHint))}
	}
	var cred execCredential
	if err := json.Unmarshal(out.Bytes(), &cred); err != nil {
		return badConfig(c.Source, fmt.Errorf("credential plugin %s: %w", e.Command, err))
	}
	c.Token = cred.Status.Token
	if cred.Status.Cert != "" {
		c.Cert, c.Key = []byte(cred.Status.Cert), []byte(cred.Status.Key)
	}
	return nil
}
