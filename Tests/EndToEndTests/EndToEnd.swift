import Testing

/// Real binaries, a real bus, a real notification server, real servers on loopback. One at a time: two cores.
@Suite(.serialized) enum EndToEnd {}
