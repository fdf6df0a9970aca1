package main

import (
	"encoding/json"
	"testing"

	"github.com/berth-hpc/berth/internal/usersource/ldaptest"
)

// TestPasswords: the configuration of the login node is that of a directory, in which unknown
// fields are errors.
func TestPasswords(t *testing.T) {
	if _, err := passwords([]byte(`{"urls": ["ldaps://x"], "users": {"base": "o=x", "fltr": "(a=b)"}}`)); err == nil {
		t.Error("a misspelt filter is accepted")
	}
	server := ldaptest.Start(t)
	server.AddUser("ann", 2001, 3000, "userPassword: secret")
	config, err := json.Marshal(map[string]any{
		"urls": []string{server.URL}, "bindDN": ldaptest.Reader, "bindPasswordFile": server.PasswordFile,
		"users": map[string]any{"base": ldaptest.People},
	})
	if err != nil {
		t.Fatal(err)
	}
	verify, err := passwords(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := verify(t.Context(), "ann", "secret"); err != nil {
		t.Error(err)
	}
	if verify(t.Context(), "ann", "wrong") == nil {
		t.Error("a wrong password is accepted")
	}
}
