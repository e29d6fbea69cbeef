package scenario_test

import (
	"flag"
	"os"
	"testing"
)

// TestMain has more scenarios run side by side than there are processors, unless -parallel says otherwise: those with a broker of their own
// wait for its timers more than they work.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
