import Testing

/// The tests that read or change the environment values, which exist once in a process. The tests of all these suites run one at
/// a time, because a serialized suite alone still runs in parallel with other suites.
@Suite(.serialized) enum OneEnvironment {}
