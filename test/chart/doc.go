// Package chart tests the Helm chart: what it renders, what it refuses, and
// that installing, upgrading and removing it on a real API server does what
// docs/admin says, by Helm itself. On nodes it runs in test/realnode.
package chart
