import Testing

@testable import BackgroundRuntime

/// Tests of the time at which deliveries to the app are acknowledged.
@Suite struct LaunchAcknowledgementsTests {
    private let acknowledgements = LaunchAcknowledgements()

    @Test func `deliveries count with the result of the launch`() {
        #expect(!acknowledgements.add { _ in })
        #expect(!acknowledgements.add { _ in })
        #expect(acknowledgements.close(counting: true).count == 2)
        #expect(acknowledgements.add { _ in })
        #expect(acknowledgements.close(counting: true).isEmpty)
    }

    @Test func `deliveries of a launch that fails do not count`() {
        #expect(!acknowledgements.add { _ in })
        #expect(acknowledgements.close(counting: false).isEmpty)
        #expect(!acknowledgements.add { _ in })
        #expect(acknowledgements.stopDeferring().isEmpty)
        #expect(!acknowledgements.add { _ in })
    }

    /// If the event were delivered again, the app would begin the new transfer a second time.
    @Test func `deliveries count immediately after the app began a transfer`() {
        #expect(!acknowledgements.add { _ in })
        #expect(acknowledgements.stopDeferring().count == 1)
        #expect(acknowledgements.stopDeferring().isEmpty)
        #expect(acknowledgements.add { _ in })
        #expect(acknowledgements.close(counting: false).isEmpty)
        #expect(acknowledgements.add { _ in })
    }
}
