//go:build !race

package segment

// raceEnabled: the race detector makes sync.Pool forget on purpose.
const raceEnabled = false
