package proc

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A test's own variables are no settings of a broker that it starts; those given are.
func TestStartedProgramsDoNotInheritTheTestsVariables(t *testing.T) {
	if os.Getenv("PROC_TEST_PRINTS") != "" {
		for _, kv := range os.Environ() {
			if strings.HasPrefix(kv, "DOZE_KAFKA_") {
				println(kv)
			}
		}
		return
	}
	t.Setenv("DOZE_KAFKA_BINARY", "x")
	log := filepath.Join(t.TempDir(), "log")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p, err := Start(log, []string{"PROC_TEST_PRINTS=1", "DOZE_KAFKA_CONTAINER=true"}, exe, "-test.run=^"+t.Name()+"$")
	if err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	printed, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(printed); strings.Contains(got, "DOZE_KAFKA_BINARY") || !strings.Contains(got, "DOZE_KAFKA_CONTAINER=true") {
		t.Errorf("it has:\n%s", got)
	}
}
