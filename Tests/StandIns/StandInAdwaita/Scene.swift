import Foundation

/// A list of scene elements, so that a modifier belongs to each element.
public typealias Scene = [any SceneElement]

public protocol SceneElement {
    var id: String { get }
    func setupInitialContainers<Storage: AppStorage>(app: Storage)
}

@resultBuilder
public enum SceneBuilder {
    public static func buildExpression(_ element: any SceneElement) -> Scene { [element] }
    public static func buildBlock(_ elements: Scene...) -> Scene { elements.flatMap { $0 } }
}

public protocol AnyView {}

public typealias Body = [any AnyView]

public protocol View: AnyView {
    @ViewBuilder var view: Body { get }
}

@resultBuilder
public enum ViewBuilder {
    public static func buildExpression(_ view: any AnyView) -> Body { [view] }
    public static func buildBlock(_ views: Body...) -> Body { views.flatMap { $0 } }
}

public struct Text: AnyView {
    let text: String

    public init(_ text: String) { self.text = text }
}

public struct AdwaitaWindow {}

public struct Window: SceneElement {
    public let id: String
    let content: (AdwaitaWindow) -> Body

    public init(id: String, @ViewBuilder content: @escaping (AdwaitaWindow) -> Body) { (self.id, self.content) = (id, content) }

    public func setupInitialContainers<Storage: AppStorage>(app: Storage) {
        Screen.open("window \(id): \(content(AdwaitaWindow()).compactMap { ($0 as? Text)?.text }.joined())")
    }
}

/// The visible windows. When a window opens, a line is written.
enum Screen {
    static func open(_ line: String) {
        guard let path = ProcessInfo.processInfo.environment["WINDOW_LOG"] else { return print(line) }
        let descriptor = Glibc.open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        let bytes = Array((line + "\n").utf8)
        write(descriptor, bytes, bytes.count)
        close(descriptor)
    }
}
