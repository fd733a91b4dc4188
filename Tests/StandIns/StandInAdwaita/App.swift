// Adwaita for Swift as far as a bridge to it goes: names and shape of the protocols of Adwaita and its Meta, as of 2024. A window is a line in a
// file. Not under the name of the library: a package must not have a module of that name when an author's app has the library itself.

public protocol App {
    associatedtype Storage: AppStorage
    var app: Storage { get }
    @SceneBuilder var scene: Scene { get }
    init()
}

extension App {
    /// Shows the windows until a person closes them; here at once.
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
