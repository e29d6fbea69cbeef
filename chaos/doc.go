// Package chaos runs the real broker, kills it with SIGKILL under load and starts it again on the same data, over and
// over, and then holds what is there against what clients were told:
//
//	go test ./chaos -count=1 -v -args -chaos.seconds=300
//	go test ./chaos -chaos.seconds=30 -chaos.seed=7
//
// It needs nothing but Go. DOZE_KAFKA_BINARY is the broker to run instead of one that is built for the test. The seed is that
// of all that is drawn by lot; when a kill hits is up to the machine, too.
package chaos
