import BackgroundRuntime

/// Calls a function for each element, with a limited number of calls at the same time. If a call is slow, the next call starts
/// while the slow call continues, so that the other elements do not wait. If the awaiting task is cancelled, all remaining calls
/// begin immediately, so that each call can observe the cancellation.
struct Lanes: Sendable {
    /// The number of calls that begin immediately.
    var count = 16
    /// The time after which a call counts as slow.
    var patience: Duration = .seconds(1)

    func forEach<Element: Sendable>(of elements: [Element], _ body: @escaping @Sendable (Element) async -> Void) async {
        let runtime = AppRuntime.ofWork
        await withTaskGroup(of: Event.self) { group in
            var (next, ended, holding) = (0, 0, Set<Int>())
            func begin() {
                guard next < elements.count else { return }
                let (number, element) = (next, elements[next])
                next += 1
                holding.insert(number)
                group.addTask {
                    await body(element)
                    return .ended(number)
                }
                group.addTask {
                    await runtime.pause(for: patience / .seconds(1))
                    return .isSlow(number)
                }
            }
            for _ in 0..<count { begin() }
            while ended < elements.count, let event = await group.next() {
                switch event {
                case .ended(let number):
                    ended += 1
                    if holding.remove(number) != nil { begin() }
                case .isSlow(let number):
                    if holding.remove(number) != nil { begin() }
                }
            }
            group.cancelAll()
        }
    }

    private enum Event {
        case ended(Int)
        case isSlow(Int)
    }
}
