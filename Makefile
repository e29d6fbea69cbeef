# Every target says what it does: `make` lists them.
.DEFAULT_GOAL := help
FUZZTIME ?= 30s
GOLANGCI ?= golangci-lint

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: ## run the broker on 127.0.0.1:9092, its data in ./data
	go run ./cmd/broker

test: ## run the tests, as README says
	go test ./...

race: ## run the tests under the race detector
	go test -race ./...

SECONDS ?= 60
chaos: ## kill the broker under load for SECONDS (60), over and over, and look for what is lost (SEED= repeats a run)
	go test ./chaos -count=1 -v -timeout 0 -args -chaos.seconds=$(SECONDS) $(if $(SEED),-chaos.seed=$(SEED))

lint: ## gofmt, go vet and golangci-lint, which has to be installed (.ci/run says which version)
	test -z "$$(gofmt -l .)" || { gofmt -l .; exit 1; }
	go vet ./...
	$(GOLANGCI) run ./...

fuzz: ## run every fuzz target for FUZZTIME (30s)
	@for pkg in $$(go list ./pkg/...); do \
	  for f in $$(go test -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
	    echo "== $$pkg $$f"; go test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) $$pkg || exit 1; \
	  done; done

sweep: ## cut the power at, and fail, every file operation of longer workloads (some minutes; again: what a failure prints)
	@out=$$(mktemp); go test ./pkg/brokertest -count=1 -v -timeout 2h -full -run 'TestPromisesOutlive|TestAdminPromises|TestAFailureOfAny|TestCompactedTopicsOutlive|TestAFailureWhileTopics' > "$$out" 2>&1; code=$$?; \
	  grep -v '^ *\(=== \|--- PASS: .*/\|[a-z_]*.go:[0-9]*: \(time=\|failed: \|the second cut\)\)' "$$out"; rm "$$out"; exit $$code

removed-steps: ## run the tests with each fsync and order of writes removed, one at a time: each has to make one fail (half an hour)
	go test ./pkg/brokertest -count=1 -v -timeout 3h -run TestEachRemovedStepIsCaught -removed

bench: ## run the benchmarks
	go test -run '^$$' -bench . -benchmem ./pkg/...

clients: ## real clients and Kafka's own tools against the broker (needs kcat, Java, Maven, Node, Python, a C++ compiler)
	cd conformance && go test -count=1 -timeout 45m ./...

clients-doc: ## run every client of the matrix and write docs/clients.md (needs what clients needs, and python3 with venv)
	cd conformance && DOZE_KAFKA_REQUIRE=all go test -count=1 ./clients/matrix -run TestMatrix -update

image: ## build the container image and test it, with the Docker engine of this machine or one that is installed and started
	.ci/run image

record: ## ask Apache Kafka again: writes conformance/recordings (needs Java, Maven)
	cd conformance && go test -count=1 ./scenario -run TestScenarios -record

replay: ## compare the broker with the recordings, field by field
	cd conformance && go test -count=1 -parallel 6 ./scenario -v -run 'TestScenarios$$|TestLimitations|TestEvery'

rerecord: ## show that Apache Kafka gives the recordings again, byte by byte (needs Java, Maven)
	cd conformance && dir=$$(mktemp -d) && go test -count=1 ./scenario -run TestScenarios -record -recordings "$$dir" && \
	  diff -r recordings "$$dir" && rm -r "$$dir"

limitations: ## write the wanted differences into docs/limitations.md
	cd conformance && go test -count=1 ./scenario -run TestLimitations -update

.PHONY: help run test race chaos lint fuzz sweep removed-steps bench clients image clients-doc record replay rerecord limitations
