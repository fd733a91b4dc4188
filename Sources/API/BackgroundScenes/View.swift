/// What a window would show. Here only so that the scenes of an app compile; nothing is drawn. An app's own views stay on iOS.
@MainActor
public protocol View {
    associatedtype Body: View
    @ViewBuilder var body: Body { get }
}

extension Never: View {}

/// Combines views.
@MainActor
@resultBuilder
public enum ViewBuilder {
    /// No view.
    public static func buildBlock() -> EmptyView { EmptyView() }
    /// One view.
    public static func buildBlock<Content: View>(_ content: Content) -> Content { content }
}

/// Nothing.
public struct EmptyView: View {
    /// Nothing to give.
    public init() {}

    public var body: Never { preconditionFailure("a primitive view has no body") }
}

/// A line of text.
public struct Text: View {
    /// - Parameter text: kept nowhere: nothing is drawn.
    public init(_ text: String) {}

    public var body: Never { preconditionFailure("a primitive view has no body") }
}
