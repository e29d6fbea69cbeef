//go:build race

package record

// raceDetector shortens what takes minutes under it.
const raceDetector = true
