package group

import (
	"encoding/binary"
	"hash/crc32"
	"iter"

	"github.com/dozekafka/doze-kafka/pkg/metastore"
)

// entryVersion is the version of an entry's layout.
const entryVersion = 1

// entryHeader is the length of what is before an entry's group.
const entryHeader = 4 + 4 + 1

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendEntry appends one entry of a journal. Numbers are big endian:
//
//	uint32 length of what follows the checksum
//	uint32 CRC-32C of it
//	uint8  version of the layout
//	uint16 length of the group's name | the name
//	the group's row as meta.db has it, with the version of this state (metastore.AppendGroup)
func appendEntry(b []byte, g metastore.Group) []byte {
	start := len(b)
	b = append(b, make([]byte, entryHeader-1)...)
	b = metastore.AppendGroup(append(b, entryVersion), g)
	body := b[start+8:]
	binary.BigEndian.PutUint32(b[start:], uint32(len(body)))
	binary.BigEndian.PutUint32(b[start+4:], crc32.Checksum(body, castagnoli))
	return b
}

// parseJournal reads entries up to the first that does not check out. That is
// the end; or one that a kill has cut off, which nobody was told of; or what a power cut
// has left of one, or of an earlier use of the file. Entries of an earlier use that check out have
// versions that their groups' rows have passed.
func parseJournal(b []byte) iter.Seq[metastore.Group] {
	return func(yield func(metastore.Group) bool) {
		for len(b) >= entryHeader {
			n := binary.BigEndian.Uint32(b)
			if n == 0 || uint64(n) > uint64(len(b)-8) {
				return
			}
			body := b[8 : 8+n]
			if crc32.Checksum(body, castagnoli) != binary.BigEndian.Uint32(b[4:]) || body[0] != entryVersion {
				return
			}
			g, err := metastore.ReadGroup(body[1:])
			if err != nil || !yield(g) {
				return
			}
			b = b[8+n:]
		}
	}
}
