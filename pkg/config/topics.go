package config

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A Seed is a topic that is made at start (FX-5).
type Seed struct {
	Name       string
	Partitions int32             // -1: NUM_PARTITIONS
	Configs    map[string]string // nil for none
}

// ParseTopics reads the setting TOPICS. Topics are separated by commas, a
// topic is name[:partitions[:configs]], its configs are separated by
// semicolons. A piece without a colon continues a config's value, so that
// audit:1:cleanup.policy=compact,delete is one topic; before any configs it is a topic's name.
// The error joins one mistake per topic. Names and configs are checked too.
// The topics of CreateTopicsVariable follow, if Parse has seen it; one that
// TOPICS names too is as TOPICS says.
func ParseTopics(s *Settings) ([]Seed, error) {
	seeds, err := parseTopics(s.Topics)
	for _, c := range s.createTopics {
		if !slices.ContainsFunc(seeds, func(t Seed) bool { return t.Name == c.Name }) {
			seeds = append(seeds, c)
		}
	}
	mistakes := []error{err}
	for _, seed := range seeds {
		if err := ValidateTopic(s, seed.Configs); err != nil {
			mistakes = append(mistakes, fmt.Errorf("topic %q: %w", seed.Name, err))
		}
	}
	if err := joinOneLine(mistakes); err != nil {
		return nil, err
	}
	return seeds, nil
}

// parseTopics reads the grammar alone.
func parseTopics(v string) ([]Seed, error) {
	return parsePieces(topicPieces(v), parseTopic)
}

// parsePieces reads a topic off each piece.
func parsePieces(pieces []string, parse func(string) (Seed, error)) ([]Seed, error) {
	var seeds []Seed
	var mistakes []error
	for _, piece := range pieces {
		seed, err := parse(piece)
		if err == nil {
			err = checkOnce(seeds, seed)
		}
		if err != nil {
			mistakes = append(mistakes, fmt.Errorf("topic %q: %w", piece, err))
			continue
		}
		seeds = append(seeds, seed)
	}
	return seeds, joinOneLine(mistakes)
}

func checkOnce(seeds []Seed, seed Seed) error {
	if slices.ContainsFunc(seeds, func(other Seed) bool { return other.Name == seed.Name }) {
		return errors.New("is there twice")
	}
	return nil
}

// topicPieces splits at the commas between topics.
func topicPieces(v string) []string {
	var pieces []string
	for piece := range strings.SplitSeq(v, ",") {
		last := len(pieces) - 1
		switch {
		case !strings.Contains(piece, ":") && last >= 0 && strings.Count(pieces[last], ":") >= 2:
			pieces[last] += "," + piece
		case strings.TrimSpace(piece) != "":
			pieces = append(pieces, strings.TrimSpace(piece))
		}
	}
	return pieces
}

func parseTopic(piece string) (Seed, error) {
	name, rest, _ := strings.Cut(piece, ":")
	partitions, configs, _ := strings.Cut(rest, ":")
	seed := Seed{Name: strings.TrimSpace(name), Partitions: -1}
	if p := TopicNameProblem(seed.Name); p != "" {
		return seed, errors.New(p)
	}
	if partitions = strings.TrimSpace(partitions); partitions != "" {
		n, err := parsePartitions(partitions)
		if err != nil {
			return seed, err
		}
		seed.Partitions = n
	}
	for c := range strings.SplitSeq(configs, ";") {
		if strings.TrimSpace(c) == "" {
			continue
		}
		k, v, ok := strings.Cut(c, "=")
		if !ok {
			return seed, fmt.Errorf("config %q is not name=value", c)
		}
		if seed.Configs == nil {
			seed.Configs = map[string]string{}
		}
		seed.Configs[strings.TrimSpace(k)] = strings.TrimSpace(v)
	}
	return seed, nil
}

func parsePartitions(v string) (int32, error) {
	n, err := strconv.ParseInt(v, 10, 32)
	if err != nil || n < 1 || n > 10000 {
		return 0, fmt.Errorf("partitions %q: want a number from 1 to 10000", v)
	}
	return int32(n), nil
}

// CreateTopicsVariable is the variable that names topics to make at start in
// images that people leave; unlike KAFKA_ and KAFKA_CFG_ in general it is no property of Kafka's.
const CreateTopicsVariable = "KAFKA_CREATE_TOPICS"

// ParseCreateTopics reads CreateTopicsVariable, the form that the images of
// wurstmeister and others made known: name:partitions:replicas[:policy] by commas or lines.
// A piece without a colon continues a policy, as in a:1:1:compact,delete.
// Replicas are checked to be a number and otherwise ignored, as there is one broker.
func ParseCreateTopics(v string) ([]Seed, error) {
	var pieces []string
	for piece := range strings.FieldsFuncSeq(v, func(r rune) bool { return r == ',' || r == '\n' }) {
		piece = strings.TrimSpace(piece)
		last := len(pieces) - 1
		switch {
		case piece == "":
		case !strings.Contains(piece, ":") && last >= 0 && strings.Count(pieces[last], ":") == 3:
			pieces[last] += "," + piece
		default:
			pieces = append(pieces, piece)
		}
	}
	return parsePieces(pieces, parseCreateTopic)
}

func parseCreateTopic(piece string) (Seed, error) {
	parts := strings.Split(piece, ":")
	if len(parts) < 3 || len(parts) > 4 {
		return Seed{}, errors.New("want name:partitions:replicas[:policy]")
	}
	seed := Seed{Name: strings.TrimSpace(parts[0])}
	if p := TopicNameProblem(seed.Name); p != "" {
		return seed, errors.New(p)
	}
	n, err := parsePartitions(strings.TrimSpace(parts[1]))
	if err != nil {
		return seed, err
	}
	seed.Partitions = n
	if r, err := strconv.ParseInt(strings.TrimSpace(parts[2]), 10, 16); err != nil || r < 1 {
		return seed, fmt.Errorf("replicas %q: want a number of at least 1", parts[2])
	}
	if len(parts) == 4 && strings.TrimSpace(parts[3]) != "" {
		policy := strings.TrimSpace(parts[3])
		if _, err := topicConfigByName["cleanup.policy"].parse(policy); err != nil {
			return seed, err
		}
		seed.Configs = map[string]string{"cleanup.policy": policy}
	}
	return seed, nil
}

// joinOneLine joins mistakes into one line, as a setting's mistake is one.
func joinOneLine(mistakes []error) error {
	var texts []string
	for _, m := range mistakes {
		if m != nil {
			texts = append(texts, m.Error())
		}
	}
	if texts == nil {
		return nil
	}
	return errors.New(strings.Join(texts, "; "))
}

const maxTopicName = 249 // Topic.MAX_NAME_LENGTH: 255 less "-", five digits of a partition

// TopicNameProblem is Kafka's reason (Topic.detectInvalidTopic) why a text
// can't be a topic's name, or "".
func TopicNameProblem(name string) string {
	switch {
	case name == "":
		return "the empty string is not allowed"
	case name == ".":
		return "'.' is not allowed"
	case name == "..":
		return "'..' is not allowed"
	case len(name) > maxTopicName:
		return "the length of '" + name + "' is longer than the max allowed length " + strconv.Itoa(maxTopicName)
	}
	for i := range len(name) {
		c := name[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-' {
			continue
		}
		return "'" + name + "' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
	}
	return ""
}
