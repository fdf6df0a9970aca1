# Berth. `make help` lists the targets.
GO      ?= go
BIN     := bin
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
K8S     := v1.36.3
KV      := k8s.io/component-base/version
LDFLAGS := -s -w -X github.com/berth-hpc/berth/internal/build.Version=$(VERSION)
# Clients parse the API server's version, so the linker has to know it.
K8SFLAGS := $(LDFLAGS) -X $(KV).gitVersion=$(K8S) -X $(KV).gitMajor=1 -X $(KV).gitMinor=36
LIGHT   := sbatch srun squeue scancel berth berth-tui berth-tools agent loginnode
HEAVY   := scheduler berth-local
# Slurm's other names are links to the multi-call binary.
LINKS   := sinfo scontrol salloc sacct sattach sacctmgr sdiag slurmrestd sprio sreport sshare seff scrontab strigger sbcast sstat sview
# Packages that link the whole of k8s.io/kubernetes; a race build of them takes
# very long, so their tests run without (make race runs them with).
HEAVYPKGS := ./internal/localcluster/... ./internal/processnode/e2e/... ./internal/sched/app/... ./cmd/scheduler/... ./cmd/berth-local/... ./test/...
# Tests that wait for minutes and compute little begin first, beside the others.
SLOWPKGS := ./loginnode ./internal/agent ./internal/acct
SLOWHEAVYPKGS := ./test/e2e ./test/chart

# An installed linter serves if it is of this version; else it is built.
LINTVERSION := 2.15.0
LINT = $(if $(findstring version $(LINTVERSION) ,$(shell golangci-lint version 2>/dev/null)),golangci-lint,\
	$(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v$(LINTVERSION))

.PHONY: help build build-light test test-unit test-cluster test-full race lint vuln generate demo bench bench-queue bench-steps bench-real bench-sched bench-kwok bench-floods bench-failover bench-size bench-profile bench-soak differential chaos bench-cores bench-topology e2e-karpenter e2e-clusterapi e2e-mpi e2e-programs e2e-real test-login test-login-long bench-login login-clients e2e-deb release-check snapshot snapshot-light snapshot-signed images cross fuzz clean simulation simulation-day

help: ## this list
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | sort | expand -t 16

build: build-light ## every command into bin/ (the first time compiles Kubernetes: minutes)
	@echo "building $(HEAVY) (compiles Kubernetes the first time: 5-10 minutes on 2 cores)"
	@./.ci/progress $(GO) build -ldflags "$(K8SFLAGS)" -o $(BIN)/ $(HEAVY:%=./cmd/%)

build-light:
	@mkdir -p $(BIN)
	@echo "building $(LIGHT)"
	@CGO_ENABLED=0 $(GO) build -ldflags "$(LDFLAGS)" -o $(BIN)/ $(LIGHT:%=./cmd/%)
	@CGO_ENABLED=0 $(GO) build -ldflags "-s -w" -o $(BIN)/ ./examples/ring
	@if pkg-config --exists pmix 2>/dev/null; then \
		CGO_ENABLED=1 $(GO) build -tags pmix -ldflags "-s -w" -o $(BIN)/ ./cmd/pmix-server; \
	else rm -f $(BIN)/pmix-server; echo "without srun --mpi=pmix: that needs libpmix-dev, pkg-config and a C compiler"; fi
	@for l in $(LINKS); do ln -sf berth $(BIN)/$$l; done

test: build test-unit test-cluster ## every test that needs no root

# What go test vets of itself, the linters vet too: without it a machine with an
# empty cache reads every package of Kubernetes once less, or twice.
test-unit: ## tests of single packages, with the race detector
	$(GO) test -vet=off -race -p 3 $(SLOWPKGS) $$($(GO) list ./... | grep -vE '/(internal/localcluster|internal/processnode/e2e|internal/sched/app|cmd/scheduler|cmd/berth-local|test)(/|$$)')
	$(GO) test -vet=off ./internal/sched/backfill # 3,000 cases of each property; the race detector has 200

# Tests of clusters mostly wait, so there are more of them at once than CPUs. They
# start some hundred clusters, which are cheaper if they collect garbage less often.
test-cluster: build ## tests against a real API server
	GOGC=300 $(GO) test -vet=off -timeout 30m -p 3 -parallel 4 -ldflags "$(K8SFLAGS)" $(SLOWHEAVYPKGS) $(HEAVYPKGS)

test-full: build ## the long forms of what test runs short: thousands of jobs, a dozen crashes
	BERTH_TEST_FULL=1 $(GO) test -count=1 -v -timeout 20m -run 'TestLive|Killed' ./internal/queue ./internal/sched/app

simulation: ## the scheduler under deterministic simulation: 10,000 seeds with faults, on two processors
	$(GO) test -c -vet=off -o $(BIN)/simulation.test ./internal/sched/simulation
	@SIMULATION_SEEDS=$${SIMULATION_SEEDS:-0-4999} $(BIN)/simulation.test -test.v -test.timeout 3h -test.run TestNothingIsLost & one=$$!; \
	[ -n "$$SIMULATION_SEEDS" ] || SIMULATION_SEEDS=5000-9999 $(BIN)/simulation.test -test.v -test.timeout 3h -test.run TestNothingIsLost; two=$$?; \
	wait $$one && exit $$two

simulation-day: ## 24 virtual hours of a busy cluster: what the leader uses does not grow
	SIMULATION_HOURS=$${SIMULATION_HOURS:-24} $(GO) test -count=1 -v -timeout 1h -run TestNothingGrows ./internal/sched/simulation

race: ## the cluster tests with the race detector as well (slow to build)
	$(GO) test -vet=off -race $(HEAVYPKGS)

lint: ## gofmt and golangci-lint (go vet is among its linters)
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); exit 1; }
	$(LINT) run ./...

vuln: ## known vulnerabilities of the dependencies, as of the database in test/vuln/go.mod
	$(GO) -C test/vuln test .
	$(GO) -C test/vuln run .

generate: ## deep copies and CRDs from api/, completion scripts and manual pages from the tables
	$(GO) run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.23.0 object crd \
		paths=./api/... paths=./translate/job output:crd:dir=deploy/crds
	$(GO) test ./internal/gen -run TestFilesAreUpToDate -update

demo: build ## a local cluster, a job over three nodes, its output, and down again
	@examples/demo.sh

bench: build ## the table of docs/performance.md
	$(GO) run ./test/bench

bench-queue: build ## the table of the same page about a queue of 10,000 jobs
	$(GO) run ./test/bench -suite=queue
	$(GO) run ./test/bench -suite=nodes -slurm=none

bench-steps: build ## the table of the same page about steps
	$(GO) run ./test/bench -suite=steps

e2e-mpi: build ## OpenMPI, MPICH and srun over three process nodes (needs openmpi-bin mpich python3-mpi4py libpmix-dev pkg-config)
	$(GO) test -count=1 -v -timeout 15m ./test/e2e -run TestMPI

e2e-programs: build ## other projects' programs, those that are installed or in BERTH_PROGRAMS=DIR, on a local cluster (minutes of their own waiting)
	BERTH_TEST_FULL=1 $(GO) test -count=1 -v -timeout 25m ./test/e2e -run TestInstalledPrograms

KARPENTER := $(BIN)/karpenter-kwok

e2e-karpenter: build ## Karpenter with its KWOK provider beside a local cluster; BERTH_TEST_FULL=1: also a thousand nodes, without and under faults (the first time compiles Karpenter: 20 minutes on 2 cores)
	$(GO) -C test/karpenter build -ldflags "-s -w" -o $(CURDIR)/$(KARPENTER) sigs.k8s.io/karpenter/kwok
	BERTH_KARPENTER=$(CURDIR)/$(KARPENTER) BERTH_KARPENTER_MODULE=$$($(GO) -C test/karpenter list -m -f '{{.Dir}}' sigs.k8s.io/karpenter) \
		$(GO) test -vet=off -count=1 -v -timeout 90m -ldflags "$(K8SFLAGS)" ./test/e2e -run TestKarpenter

CLUSTERAPI := $(BIN)/clusterapi-core

e2e-clusterapi: build ## Cluster API's core controllers beside a local cluster (the first time compiles them: minutes)
	$(GO) -C test/clusterapi build -ldflags "-s -w" -o $(CURDIR)/$(CLUSTERAPI) sigs.k8s.io/cluster-api/core
	BERTH_CLUSTERAPI=$(CURDIR)/$(CLUSTERAPI) BERTH_CLUSTERAPI_MODULE=$$($(GO) -C test/clusterapi list -m -f '{{.Dir}}' sigs.k8s.io/cluster-api) \
		$(GO) test -vet=off -count=1 -v -timeout 30m -ldflags "$(K8SFLAGS)" ./test/e2e -run TestClusterAPI

e2e-real: build ## the installed product on three real kubelets with containerd (root)
	test/realnode/run.sh

LOGINPKGS := ./loginnode/... ./test/login
# Clients that test-login talks to the login node with; what is missing is skipped.
LOGINCLIENTS := openssh-client openssh-server openssh-sftp-server rsync sshfs lftp dropbear-bin putty-tools python3-paramiko ssh-audit curl

test-login: build ## the login node: attackers, real clients, a local cluster (as root, else of oneself only)
	$(GO) test -count=1 -v -timeout 30m $(LOGINPKGS)

test-login-long: ## its long forms: 2,000 sessions, 1,000 log-ins at once, 1,000 terminals, 100,000 channels, 2,000 peers that never log in; the walk beside sshd
	BERTH_TEST_FULL=1 $(GO) test -count=1 -v -timeout 30m ./loginnode -run 'TestS15NothingIsLeft|TestManyLogins|TestIdleTerminals|TestS07ManyChannels|TestS06AnAttack|TestBesideSSHD'

bench-real: build ## the table of the same page about real kubelets: 500 jobs beside 500 plain JobSets (root)
	$(GO) run ./test/bench -suite=real

bench-cores: build ## the table of the same page about cores of jobs beside noisy neighbours on real kubelets (root)
	$(GO) run ./test/bench -suite=cores

bench-topology: build ## the table of docs/sim.md about switches, beside the Slurm in PATH, which has idle nodes and a topology.conf (BERTH_TEST_TRACES=DIR)
	$(GO) run ./test/bench -suite=topology -page=docs/sim.md

bench-sched: ## the table of the same page about the planner (BERTH_TEST_TRACES=DIR replays KTH-SP2 too)
	$(GO) run ./test/bench -suite=planner

bench-kwok: build ## the tables of the same page about pods that kube-scheduler binds too
	$(GO) build -ldflags "$(K8SFLAGS)" -o $(BIN)/ k8s.io/kubernetes/cmd/kube-scheduler
	$(GO) run ./test/bench -suite=pods
	$(GO) run ./test/bench -suite=backlog

bench-floods: build ## the table of the same page about one user's floods and another user's commands (as root)
	$(GO) run ./test/bench -suite=floods -repeat=100

bench-size: build ## the table of the same page about 100,000 jobs of 1,000 users and 5,000 nodes (20 minutes)
	$(GO) run ./test/bench -suite=size

bench-soak: build ## the table of the same page about memory and disk while jobs run for half an hour
	$(GO) run ./test/bench -suite=soak

bench-profile: build ## the table of the same page about what a submission, a start and an end of a job cost
	$(GO) run ./test/bench -suite=profile

bench-failover: build ## the table of the same page about a leading scheduler that is killed (as root)
	$(GO) run ./test/bench -suite=failover

# The accounts of the two users are made on both systems, with root's sacctmgr.
differential: build ## thousands of random command lines on Berth and on the Slurm of SLURM_CONF (DIFFFLAGS="-calls 20000 -users A,B", as root)
	$(GO) run ./test/differential $(DIFFFLAGS)

chaos: build ## users, faults and a checker of what the cluster promises, for half an hour (CHAOSFLAGS="-seed N -duration 1h -faults leader,agent")
	$(GO) run ./test/chaos $(CHAOSFLAGS)

bench-login: build-light ## the login node beside Debian's sshd (as root; needs openssh-server)
	$(GO) run ./test/benchlogin

login-clients: ## install the clients that test-login can use (Debian, root)
	apt-get install -y --no-install-recommends $(LOGINCLIENTS)

e2e-deb: build-light ## the Debian package in a clean Debian, alone and beside Slurm's client (root, debootstrap)
	test/deb/run.sh

GORELEASER = $(GO) run github.com/goreleaser/goreleaser/v2@v2.14.0

release-check: ## goreleaser.yaml (compiles goreleaser: minutes the first time)
	$(GORELEASER) check goreleaser.yaml

snapshot: ## everything that a release has, into dist/, unsigned and unpublished
	$(GORELEASER) release -f goreleaser.yaml --snapshot --clean --skip=sign --timeout=3h
	$(MAKE) images

snapshot-light: ## the same without what has Kubernetes inside: minutes, not half an hour
	BERTH_RELEASE=light $(GORELEASER) release -f goreleaser.yaml --snapshot --clean --skip=sign --timeout=3h

snapshot-signed: ## the same with a signature, by cosign's COSIGN_KEY (BERTH_RELEASE=light: without what has Kubernetes inside)
	$(GORELEASER) release -f goreleaser.yaml --snapshot --clean

images: ## the images of what snapshot has built, for each platform, into dist/images (IMAGEFLAGS=-login-base ROOT.tar where no registry is reached)
	$(GO) run ./deploy/package/image -version $(subst ~,-,$(VERSION)) -dist dist -out dist/images $(IMAGEFLAGS)

cross: ## the light programs for every platform of a release, which compiles them and keeps none
	@for p in linux/amd64 linux/arm64 darwin/amd64 darwin/arm64; do echo "$$p: the commands"; \
		CGO_ENABLED=0 GOOS=$${p%/*} GOARCH=$${p#*/} $(GO) build -o /dev/null ./cmd/berth ./cmd/berth-tools ./cmd/berth-tui || exit 1; done
	@for a in amd64 arm64; do echo "linux/$$a: agent and login node"; \
		CGO_ENABLED=0 GOOS=linux GOARCH=$$a $(GO) build -o /dev/null ./cmd/agent ./cmd/loginnode || exit 1; done

fuzz: ## each fuzz target for FUZZTIME (default 10m)
	@.ci/fuzz $${FUZZTIME:-10m}

clean:
	rm -rf $(BIN) dist
