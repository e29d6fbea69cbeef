package dozekafka

// DockerUnusable is dockerUnusable, by which the tests too tell whether there is an engine.
var DockerUnusable = dockerUnusable
