package config

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

var byteUnits = []struct {
	suffix string
	factor int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}

// plainBytes turns 128MiB into 134217728, so that the parser of numbers can
// read it. Anything that has none of the suffixes is returned as it is: KB and
// MB are not accepted, since some mean 1000 and some 1024 by them.
func plainBytes(v string) (string, error) {
	for _, u := range byteUnits {
		n, ok := strings.CutSuffix(v, u.suffix)
		if !ok {
			continue
		}
		i, err := strconv.ParseInt(strings.TrimSpace(n), 10, 64)
		if err != nil || i < 0 {
			return "", errors.New("want a whole number before " + u.suffix)
		}
		if i > math.MaxInt64/u.factor {
			return "", errors.New("too large")
		}
		return strconv.FormatInt(i*u.factor, 10), nil
	}
	if _, err := strconv.ParseInt(v, 10, 64); err != nil {
		return "", errors.New("want a whole number of bytes, or one with the suffix KiB, MiB or GiB")
	}
	return v, nil
}

// formatBytes is the inverse of plainBytes where a suffix fits exactly.
func formatBytes(v string) string {
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n <= 0 {
		return v
	}
	for _, u := range byteUnits {
		if n%u.factor == 0 {
			return strconv.FormatInt(n/u.factor, 10) + u.suffix
		}
	}
	return v
}

// parseDuration reads a Go duration. A number alone is refused with a hint,
// since some read it as seconds and some as milliseconds.
func parseDuration(v string) (time.Duration, error) {
	d, err := time.ParseDuration(v)
	if err == nil {
		return d, nil
	}
	if _, nerr := strconv.ParseInt(v, 10, 64); nerr == nil {
		return 0, fmt.Errorf("a duration needs a unit, such as %sms", v)
	}
	return 0, errors.New("want a duration such as 500ms, 2s or 1m30s")
}
