// Package classic is one group of the classic protocol (JoinGroup, SyncGroup,
// Heartbeat, LeaveGroup) as a pure state machine, as Kafka's ClassicGroup and
// the classicGroup* methods of its GroupMetadataManager are: the time comes in
// with each call, what is to be answered goes out as effects. It has no lock,
// clock or disk; testdata/ holds conversations with it that read as its documentation.
package classic
