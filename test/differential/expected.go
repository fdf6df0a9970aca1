package main

import "regexp"

// expected matches the signatures of differences that Berth makes on purpose:
// docs/what-is-different.md names them. The report lists them behind the others. Accounts
// and QOS are enforced unless slurm.conf says otherwise.
var expected = regexp.MustCompile(`has no effect|is not possible here|users are User objects|set KUBECONFIG|` +
	`out: Partitions=|err:  ≠ .*Invalid (account|qos)`)

func isExpected(signature string) bool { return expected.MatchString(signature) }
