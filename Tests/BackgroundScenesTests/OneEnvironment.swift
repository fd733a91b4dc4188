import Testing

/// The suites that read or change the environment values. All scenes of a process share these values, so all these tests run one
/// at a time. Separate serialized suites would run in parallel with each other.
@Suite(.serialized) enum OneEnvironment {}
