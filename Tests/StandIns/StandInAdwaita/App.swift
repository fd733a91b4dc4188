// The part of Adwaita for Swift that a bridge needs: the protocols of Adwaita and of its package Meta, in their forms of 2024. A
// window is represented by a line in a file. The module has another name than the library. If an author's app uses the library,
// no other package may have a module with the library's name.

public protocol App {
    associatedtype Storage: AppStorage
    var app: Storage { get }
    @SceneBuilder var scene: Scene { get }
    init()
}

extension App {
    /// Shows the windows and returns. The real library returns when the user closes the windows.
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
