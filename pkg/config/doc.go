// Package config holds every setting once: name, type, default, scope and
// documentation. Flags, environment variables, topic configs, DescribeConfigs
// and the README's table are derived from it.
package config

//go:generate go test . -run TestReadme -update
