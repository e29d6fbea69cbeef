package record

// Stamp sets what the broker owns in a batch that Validate accepted (ST-12):
// its base offset, its leader epoch and its max timestamp. logAppendTime, in
// ms, is the time of the append on a topic of
// message.timestamp.type=LogAppendTime, and -1 on one of CreateTime; the
// timestamp type of the batch follows it.
//
// The checksum is computed again only if a byte that it covers changed
// (DefaultRecordBatch.setMaxTimestamp): most clients send the right max timestamp.
func Stamp(b Batch, baseOffset int64, epoch int32, v Verdict, logAppendTime int64) {
	b.SetBaseOffset(baseOffset)
	b.SetLeaderEpoch(epoch)
	byBroker, highest := false, v.MaxTimestamp
	if logAppendTime != NoTimestamp {
		byBroker, highest = true, logAppendTime
	}
	if b.LogAppendTime() == byBroker && b.MaxTimestamp() == highest {
		return
	}
	attributes := b.Attributes() & attrKnown &^ attrLogAppendTime
	if byBroker {
		attributes |= attrLogAppendTime
	}
	b.SetAttributes(attributes)
	b.SetMaxTimestamp(highest)
	b.SetCRC()
}
