package main

import "regexp"

// expected matches the signatures of differences that Berth makes on purpose:
// docs/what-is-different.md names them. The report lists them behind the others.
var expected = regexp.MustCompile(`has no effect|is not possible here|users are User objects|set KUBECONFIG|out: Partitions=`)

func isExpected(signature string) bool { return expected.MatchString(signature) }
