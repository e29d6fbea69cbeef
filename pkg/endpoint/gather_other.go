//go:build !linux

package endpoint

const gathers = false
