package image

import (
	"strings"
	"testing"
	"time"

	"github.com/dozekafka/doze-kafka/conformance/image/client"
)

// FX-34: what GitHub's runner does for a job with
//
//	services:
//	  kafka:
//	    image: ghcr.io/dozekafka/doze-kafka:1
//	    ports: ["9092:9092"]
//	    env: { DOZE_KAFKA_TOPICS: "orders:3,audit:1" }
//
// command by command (actions/runner, ContainerOperationProvider and DockerCommandManager): no command, no options. Its pull is left out, as the
// image is one that was just built. The job runs on the runner, and then in a container beside the service; neither sets an address.
func TestServiceContainerOfGitHubActions(t *testing.T) {
	needEngine(t)
	needClients(t)
	label := strings.ReplaceAll(name("label"), "-", "")
	network := "github_network_" + label
	must(t, "network", "create", "--label", label, network)
	gone(t, "network", "rm", network)
	id := name("kafka")
	must(t, "create", "--name", id, "--label", label, "--network", network, "--network-alias", "kafka", "-p", "9092:9092",
		"-e", "DOZE_KAFKA_TOPICS=orders:3,audit:1", "-e", "GITHUB_ACTIONS=true", "-e", "CI=true", image)
	gone(t, "rm", "--force", "--volumes", id)
	began := time.Now()
	must(t, "start", id)
	if ps := must(t, "ps", "--all", "--filter", "id="+must(t, "inspect", "--format", "{{.Id}}", id), "--filter", "status=running", "--no-trunc",
		"--format", "{{.ID}} {{.Status}}"); ps == "" {
		t.Error("the runner would warn that the service is not running")
	}
	if port := must(t, "port", id); !strings.Contains(port, "9092/tcp -> ") || strings.Contains(port, "9080") {
		t.Errorf("job.services.kafka.ports: %s", port)
	}
	health := runnersWait(t, id)
	t.Logf("service is %s after %v", health, time.Since(began).Round(time.Millisecond))
	if health != "healthy" {
		t.Fatal(must(t, "logs", id))
	}

	if err := client.Produce(t.Context(), "localhost:9092", "orders", "from the runner"); err != nil {
		t.Errorf("job on the runner: %v", err)
	}
	got := must(t, "run", "--rm", "--label", label, "--network", network, "-e", "GITHUB_ACTIONS=true", "-e", "CI=true", clients,
		"client", "consume", "kafka:9092", "orders", "job", "1")
	if got != "from the runner" {
		t.Errorf("job in a container: consumed %q", got)
	}
}

// runnersWait is the runner's wait for a service: while its health is "starting" it waits 2 s, 4 s and so on up to 32 s between two looks.
// Without a health check in the image there would be no wait.
func runnersWait(t *testing.T, id string) string {
	t.Helper()
	const format = "{{if .Config.Healthcheck}}{{print .State.Health.Status}}{{end}}"
	pause := 2 * time.Second
	for {
		health := must(t, "inspect", "--format", format, id)
		if health != "starting" || pause > 32*time.Second {
			return health
		}
		timer := time.NewTimer(pause)
		<-timer.C
		pause *= 2
	}
}

// What GitLab's runner does: an alias, no health check waited for but a connection to the exposed port, and no setting at all.
func TestServiceOfGitLab(t *testing.T) {
	needEngine(t)
	needClients(t)
	network := newNetwork(t)
	run(t, "--network", network, "--network-alias", "kafka", image).healthy()
	sibling(t, network, "client", "produce", "kafka:9092", "demo", "hello")
	if got := sibling(t, network, "client", "consume", "kafka:9092", "demo", "group", "1"); got != "hello" {
		t.Errorf("consumed %q", got)
	}
}
