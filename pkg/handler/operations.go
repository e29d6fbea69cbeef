package handler

// The authorized operations that Kafka tells where no authorizer is set, as
// bit fields of AclOperation codes (READ 3, WRITE 4, CREATE 5, DELETE 6,
// ALTER 7, DESCRIBE 8, CLUSTER_ACTION 9, DESCRIBE_CONFIGS 10, ALTER_CONFIGS 11,
// IDEMPOTENT_WRITE 12). A client that did not ask gets -2^31, kmsg's default.
const (
	topicOperations   = 1<<3 | 1<<4 | 1<<5 | 1<<6 | 1<<7 | 1<<8 | 1<<10 | 1<<11
	groupOperations   = 1<<3 | 1<<6 | 1<<8 | 1<<10 | 1<<11
	clusterOperations = 1<<5 | 1<<7 | 1<<8 | 1<<9 | 1<<10 | 1<<11 | 1<<12
)
