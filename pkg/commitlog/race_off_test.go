//go:build !race

package commitlog

const raceDetector = false
