import Foundation

/// A scene is defined by its node. The protocol of scenes has no property `body`.
@MainActor
public protocol Scene {
    associatedtype Node: SceneGraphNode where Node.NodeScene == Self
}

@MainActor
public protocol SceneGraphNode: AnyObject {
    associatedtype NodeScene: Scene
    init(from scene: NodeScene)
}

@MainActor
@resultBuilder
public enum SceneBuilder {
    public static func buildBlock<Content: Scene>(_ content: Content) -> Content { content }
}

public struct WindowGroup<Content: View>: Scene {
    public typealias Node = WindowGroupNode<Content>

    let title: String
    let content: () -> Content

    public init(_ title: String? = nil, @ViewBuilder _ content: @escaping () -> Content) {
        self.title = title ?? ProcessInfo.processInfo.processName
        self.content = content
    }
}

public final class WindowGroupNode<Content: View>: SceneGraphNode {
    public init(from scene: WindowGroup<Content>) {
        let text = (scene.content() as? Text)?.string ?? ""
        Screen.open("window \(scene.title): \(text)")
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
