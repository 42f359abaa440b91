# Everything a newcomer needs: make demo, make test. See README.md.
GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS  = -s -w -X toritsugi/internal/cli.version=$(VERSION)
# Tests sync much of what they write: it lies in memory where there is room, as what Go builds.
INMEMORY = TMPDIR=$$(./scripts/testdir.sh)
LINT     = $(GO) tool -modfile=tools/go.mod golangci-lint

# The linters, the tests and the program share what is compiled: without cgo and without the paths of
# this machine, as it ships.
export CGO_ENABLED = 0
export GOFLAGS    += -trimpath

.PHONY: demo build test test-short test-gitea eval race lint fmt bench fuzz setup clean

## demo: carry a small issue to a tested commit, offline, with a script instead of a model
demo: build
	./bin/tori demo $(if $(DIR),--dir $(DIR))

## build: the one binary, without cgo
build:
	$(GO) build -ldflags "$(LDFLAGS)" -o bin/tori ./cmd/tori

## setup: what the tests use besides Go and git (bubblewrap, sqlite3, node)
setup:
	./scripts/setup.sh

## test: all tests
# Those of the command line wait for one another's processes, so six run at once. make lint vets.
test: setup
	$(INMEMORY) $(GO) test -vet=off -timeout 80m -parallel 6 $$($(GO) list ./... | grep -v '/internal/sandbox$$')
	for b in sqlite postgres; do $(INMEMORY) TORI_TEST_BACKEND=$$b $(GO) test -vet=off -timeout 20m -skip Crash ./internal/contextstore || exit 1; done
	$(GO) test -vet=off -timeout 80m ./internal/sandbox # alone: attempts without walls take what the machine has

## test-short: those that take a moment each; the others say why they are skipped
test-short:
	$(INMEMORY) $(GO) test -short -timeout 5m -parallel 6 ./...

## test-gitea: the Gitea member against a real Gitea, which is built at the first time (minutes; a C compiler)
# Time goes by there as it does: several minutes.
test-gitea:
	$(INMEMORY) ./scripts/gitea.sh $(GO) test -count=1 -timeout 80m -run 'RealServer|/RealServer' ./internal/forge/gitea

## eval: every case of tori eval by its answers, those of Go too, which make test leaves out
eval: setup
	TORI_EVAL_ALL=1 $(GO) test -count=1 -timeout 15m ./internal/eval

## race: the concurrent packages under the race detector (needs a C compiler)
race:
	CGO_ENABLED=1 $(GO) test -race -timeout 15m ./internal/contextstore ./internal/dispatch ./internal/turn ./internal/tool/... ./internal/sandbox ./internal/llm/...

## lint: the linters of .golangci.yaml, vet among them, formatting, and functions that nothing calls
# Besides tests: doubles for tests, what fmt calls, and the list of texts.
lint:
	$(LINT) run ./...
	@dead=$$($(GO) tool -modfile=tools/go.mod deadcode ./cmd/tori ./bench | grep -v -e 'test/' -e 'String$$' -e 'i18n.go.*Keys$$'); \
	if [ -n "$$dead" ]; then echo "nothing calls these:"; echo "$$dead"; exit 1; fi

## fmt: format the code
fmt:
	$(LINT) fmt ./...

## bench: our cost per turn beside the bare loop's, model clients beside net/http, and the ledger with millions in it; BENCH=-ledger-only, -memory-only, -llm-only, -workspace-only (-huge for 1 GB), -dispatch-only, -chat-only, -tokens-only, -database-only, -cluster-only or -sandbox-only for a part
bench: build
	$(GO) run ./bench -tori ./bin/tori $(BENCH)
	$(GO) run ./bench -sandbox-only
	$(GO) test -run '^$$' -bench 'Grep|Call' ./internal/tool ./internal/tool/mcp

clean:
	rm -rf bin
