import Testing

/// The suites that read or change the environment values. These values exist once in a process, so all these tests run one at a
/// time. Separate serialized suites would run in parallel with each other.
@Suite(.serialized) enum OneEnvironment {}
