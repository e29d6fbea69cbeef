//go:build race

package commitlog

// raceDetector shortens what takes minutes under it, and is where its pools give back less than they take.
const raceDetector = true
