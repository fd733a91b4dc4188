import BackgroundTasks
import StandInAdwaita

extension SceneElement {
    func backgroundTask<Request: Sendable, Response: Sendable>(
        _ task: BackgroundTask<Request, Response>, action: @escaping @Sendable (Request) async -> Response
    ) -> Self {
        BackgroundLaunch.handle(task, action: action)
        return self
    }
}
