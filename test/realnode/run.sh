#!/bin/bash
# The end-to-end test on real kubelets: "make e2e-real". Needs root, Go and
# Berth's binaries in bin (or BERTH_BIN); installs the Debian packages it lacks.
# BERTH_CACHE: where built kubelets and images are kept (~/.cache/berth-e2e).
# BERTH_E2E_KEEP=1: keep the logs of a run that failed. -short: what CI runs,
# some minutes less.
set -euo pipefail
cd "$(dirname "$0")/../.."
# Where nothing is cached yet, what is built first takes a time that is not the
# tests'.
go test -vet=off -count=1 -timeout 60m -tags e2ereal -run '^$' ./test/realnode
go test -vet=off -count=1 -v -timeout 25m -tags e2ereal -run TestRealNodes ./test/realnode "$@"
case " $* " in *" -short "*) exit ;; esac
# Cores of jobs, on nodes with and without the kubelet's static CPU manager.
BERTH_E2E_CORES=0 go test -vet=off -count=1 -v -timeout 20m -tags e2ereal -run TestCores ./test/realnode
# Kubelets that refuse pods for their NUMA alignment, and drivers that cannot prepare devices.
BERTH_E2E_HARDWARE=1 go test -vet=off -count=1 -v -timeout 20m -tags e2ereal -run TestHardware ./test/realnode
# The pages for administrators, on nodes of their own.
BERTH_E2E_PAGES=1 go test -vet=off -count=1 -timeout 60m -tags e2ereal -run '^$' ./test/realnode
BERTH_E2E_PAGES=1 go test -vet=off -count=1 -v -timeout 20m -tags e2ereal -run TestPages ./test/realnode
