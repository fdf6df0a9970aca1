// Package chart tests the Helm chart: what it renders, what it refuses, and, with Helm
// itself, that installing, upgrading and removing it on a real API server works as
// docs/admin describes. test/realnode runs it on nodes.
package chart
