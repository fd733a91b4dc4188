import Testing

/// The tests that read or change what a process has once: its environment values. One at a time over all their suites, because a suite
/// alone that is serialized still runs beside the others.
@Suite(.serialized) enum OneEnvironment {}
