package judge

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
)

const (
	outcomeClosed = "connection closed"
	outcomeNone   = "no response"
)

// Exchange is one request and what came of it.
type Exchange struct {
	Step     string `json:"step"`
	API      string `json:"api,omitempty"` // none: raw bytes
	Version  int16  `json:"version"`
	Request  any    `json:"request"`
	Response any    `json:"response,omitempty"`
	Outcome  string `json:"outcome,omitempty"`       // when there was no response
	Bytes    string `json:"responseBytes,omitempty"` // hex, without the size; of a raw exchange with the header
	Encoding string `json:"encoding,omitempty"`
}

// Recording is what Apache Kafka said in a scenario. It is written by -record and by nothing else.
type Recording struct {
	Kafka     string     `json:"kafka"` // version
	Scenario  string     `json:"scenario"`
	Exchanges []Exchange `json:"exchanges"`
}

// Path is the file of a scenario's recording below dir.
func Path(dir, scenario string) string { return filepath.Join(dir, scenario+".json") }

// Marshal is the recording as it is stored: the same bytes for the same answers.
func (r *Recording) Marshal() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(r); err != nil {
		return nil, err
	}
	return pretty(bytes.TrimSpace(b.Bytes()))
}

// Unmarshal reads what Marshal wrote. Numbers stay as they are written.
func Unmarshal(b []byte) (*Recording, error) {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	r := new(Recording)
	return r, dec.Decode(r)
}

// Plain is the recording as if it had been stored and read again, so that it can be compared with one that was.
func (r *Recording) Plain() (*Recording, error) {
	b, err := r.Marshal()
	if err != nil {
		return nil, err
	}
	return Unmarshal(b)
}

// Load reads the recording of a scenario.
func Load(dir, scenario string) (*Recording, error) {
	b, err := os.ReadFile(Path(dir, scenario))
	if err != nil {
		return nil, err
	}
	return Unmarshal(b)
}
