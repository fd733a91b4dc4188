// The part of Adwaita for Swift that a bridge needs: names and forms of the protocols of Adwaita and its Meta, as of 2024. A
// window is a line in a file. The module does not have the name of the library. A package must not have a module of that name if
// an author's app uses the library.

public protocol App {
    associatedtype Storage: AppStorage
    var app: Storage { get }
    @SceneBuilder var scene: Scene { get }
    init()
}

extension App {
    /// Shows the windows and returns. The library returns when the user closes the windows.
    public static func main() {
        let instance = Self()
        instance.app.run { for element in instance.scene { element.setupInitialContainers(app: instance.app) } }
    }
}

public protocol AppStorage: AnyObject {
    init(id: String)
    func run(setup: @escaping () -> Void)
    func quit()
}

public final class AdwaitaApp: AppStorage {
    public let id: String

    public init(id: String) { self.id = id }

    public func run(setup: @escaping () -> Void) { setup() }

    public func quit() {}
}
