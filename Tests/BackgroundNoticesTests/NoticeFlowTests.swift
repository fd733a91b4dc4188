import BackgroundNotices
import Testing

/// Tests that some notifications are shown individually, and all other notifications in summaries.
@Suite struct NoticeFlowTests {
    private func waiting(_ count: Int, thread: String = "", heldBack: Bool = false, from first: Int = 0) -> [NoticeFlow.Waiting] {
        (first..<first + count).map {
            NoticeFlow.Waiting(identifier: "\(thread)\($0)", thread: thread, wasHeldBack: heldBack)
        }
    }

    @Test func `five notifications are shown individually`() {
        var flow = NoticeFlow()
        let decision = flow.decide(waiting(5), gathering: [], awake: 0)
        #expect(decision.show.count == 5 && decision.gather.isEmpty && decision.pause == nil)
    }

    @Test func `a thousand notifications become five notifications and one summary`() {
        var flow = NoticeFlow()
        let decision = flow.decide(waiting(1_000), gathering: [], awake: 0)
        #expect(decision.show == (0..<5).map { "\($0)" })
        #expect(decision.gather == [.many: (5..<1_000).map { "\($0)" }])
    }

    @Test func `the largest threads have separate summaries`() {
        var flow = NoticeFlow()
        let all =
            waiting(5) + waiting(3, thread: "a") + waiting(2, thread: "b") + waiting(4, thread: "c") + waiting(2, thread: "d")
            + waiting(1, thread: "e")
        let decision = flow.decide(all, gathering: [], awake: 0)
        #expect(decision.gather.keys.count == 4)
        #expect(decision.gather[.thread("c")]?.count == 4 && decision.gather[.thread("a")]?.count == 3)
        #expect(decision.gather[.thread("b")]?.count == 2, "of equal threads, the first thread by name is chosen")
        #expect(decision.gather[.many] == ["d0", "d1", "e0"])
    }

    /// A summary of only one notification would show less text than the notification.
    @Test func `a single notification waits and does not become a summary`() {
        var flow = NoticeFlow()
        _ = flow.decide(waiting(5), gathering: [], awake: 100)
        let one = flow.decide(waiting(1, from: 5), gathering: [], awake: 101)
        #expect(one.show.isEmpty && one.gather.isEmpty)
        #expect(abs((one.pause ?? 0) - 14) < 0.001)
        #expect(flow.decide(waiting(1, from: 5), gathering: [], awake: 115.001).show == ["5"])
        #expect(flow.decide(waiting(1, from: 6), gathering: [.many], awake: 116).gather == [.many: ["6"]])
    }

    @Test func `notifications that were held back become one summary`() {
        var flow = NoticeFlow()
        #expect(flow.decide(waiting(1, heldBack: true), gathering: [], awake: 0).show == ["0"])
        let decision = flow.decide(waiting(3, heldBack: true) + waiting(2, from: 9), gathering: [], awake: 0)
        #expect(decision.gather == [.quietHours: ["0", "1", "2"]] && decision.show == ["9", "10"])
    }

    /// No notification is lost or shown twice. In no time span are more notifications shown than the token bucket allows.
    @Test(arguments: 0..<50 as Range<UInt64>)
    func `every notification is shown or summarized once and the rate is limited`(_ seed: UInt64) {
        var dice = Dice(seed)
        var flow = NoticeFlow()
        var awake = 1_000.0
        var shown: [Double] = []
        var left: [NoticeFlow.Waiting] = []
        var count = 0
        for _ in 0..<200 {
            awake += Double.random(in: 0...10, using: &dice)
            for _ in 0..<Int.random(in: 0...3, using: &dice) {
                let thread = ["", "a", "b"].randomElement(using: &dice) ?? ""
                left.append(.init(identifier: "\(count)", thread: thread, wasHeldBack: Bool.random(using: &dice)))
                count += 1
            }
            let decision = flow.decide(left, gathering: [], awake: awake)
            let gone = Set(decision.show + decision.gather.values.flatMap { $0 })
            #expect(gone.count == decision.show.count + decision.gather.values.map(\.count).reduce(0, +), "nobody twice")
            #expect(gone.isSubset(of: left.map(\.identifier)))
            left.removeAll { gone.contains($0.identifier) }
            #expect(left.isEmpty || decision.pause != nil)
            shown += decision.show.map { _ in awake }
        }
        for (index, first) in shown.enumerated() {
            let within = shown[index...].prefix { $0 <= first + 60 }.count
            #expect(within <= NoticeFlow.capacity + Int(60 / NoticeFlow.refill) + 1)
        }
    }
}
