package record

// A Codec says how a batch's records are compressed: bits 0 to 2 of the attributes.
type Codec int8

// The codecs of message format v2.
const (
	None   Codec = 0
	Gzip   Codec = 1
	Snappy Codec = 2
	LZ4    Codec = 3
	Zstd   Codec = 4
)
