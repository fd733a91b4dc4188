// A chat app. Messages are received in the background, and the user can reply from the notification. The code was written for
// iOS, and only its imports were changed.
import BackgroundTasks
import BackgroundTransfer
import UserNotifications

struct ChatMessage: Codable, Identifiable, Sendable {
    let id: Int
    let conversation: String
    let sender: String
    let text: String
}

struct ChatReply: Codable, Sendable, Equatable {
    let conversation: String
    let text: String
}

enum ChatError: Error {
    case server(status: Int)
}

actor ChatService {
    private let baseURL: URL
    private let session: URLSession
    private var lastSeen = 0

    init(baseURL: URL, session: URLSession = .shared) {
        self.baseURL = baseURL
        self.session = session
    }

    func newMessages() async throws -> [ChatMessage] {
        var components = URLComponents(url: baseURL.appending(path: "messages"), resolvingAgainstBaseURL: false)!
        components.queryItems = [URLQueryItem(name: "since", value: String(lastSeen))]
        let (data, response) = try await session.data(from: components.url!)
        try Self.check(response)
        try Task.checkCancellation()
        let messages = try JSONDecoder().decode([ChatMessage].self, from: data)
        lastSeen = messages.map(\.id).max() ?? lastSeen
        return messages
    }

    func send(_ reply: ChatReply) async throws {
        var request = URLRequest(url: baseURL.appending(path: "messages"))
        request.httpMethod = "POST"
        request.setValue("application/json", forHTTPHeaderField: "Content-Type")
        let (_, response) = try await session.upload(for: request, from: JSONEncoder().encode(reply))
        try Self.check(response)
    }

    private static func check(_ response: URLResponse) throws {
        guard let http = response as? HTTPURLResponse else { throw URLError(.badServerResponse) }
        guard (200...299).contains(http.statusCode) else { throw ChatError.server(status: http.statusCode) }
    }
}

@MainActor
final class ChatController: NSObject {
    static let refreshTaskIdentifier = "com.example.chat.refresh"

    private enum Category { static let message = "MESSAGE" }
    private enum Action {
        static let reply = "REPLY_ACTION"
        static let markAsRead = "READ_ACTION"
    }

    private let service: ChatService
    private let center = UNUserNotificationCenter.current()
    private(set) var unread: [ChatMessage] = []
    private(set) var sent: [ChatReply] = []

    init(service: ChatService) {
        self.service = service
        super.init()
        center.delegate = self
    }

    func start() async throws {
        registerCategories()
        registerBackgroundTask()
        let settings = await center.notificationSettings()
        guard settings.authorizationStatus != .denied else { return }
        if try await center.requestAuthorization(options: [.alert, .sound, .badge]) { scheduleRefresh() }
    }

    private func registerCategories() {
        let reply = UNTextInputNotificationAction(
            identifier: Action.reply, title: "Reply", options: [.authenticationRequired], textInputButtonTitle: "Send",
            textInputPlaceholder: "Message")
        let read = UNNotificationAction(identifier: Action.markAsRead, title: "Mark as Read", options: [])
        let message = UNNotificationCategory(
            identifier: Category.message, actions: [reply, read], intentIdentifiers: [],
            hiddenPreviewsBodyPlaceholder: "New message", options: [.customDismissAction])
        center.setNotificationCategories([message])
    }

    private func registerBackgroundTask() {
        BGTaskScheduler.shared.register(forTaskWithIdentifier: Self.refreshTaskIdentifier, using: .main) { [weak self] task in
            MainActor.assumeIsolated {
                guard let task = task as? BGAppRefreshTask, let self else { return task.setTaskCompleted(success: false) }
                self.handle(task)
            }
        }
    }

    private func handle(_ task: BGAppRefreshTask) {
        let work = Task {
            do {
                try await sync()
                task.setTaskCompleted(success: true)
            } catch {
                task.setTaskCompleted(success: false)
            }
        }
        task.expirationHandler = { work.cancel() }
        scheduleRefresh()
    }

    func scheduleRefresh() {
        let request = BGAppRefreshTaskRequest(identifier: Self.refreshTaskIdentifier)
        request.earliestBeginDate = .now.addingTimeInterval(30 * 60)
        do {
            try BGTaskScheduler.shared.submit(request)
        } catch BGTaskScheduler.Error.notPermitted {
            assertionFailure("missing from Info.plist")
        } catch BGTaskScheduler.Error.tooManyPendingTaskRequests, BGTaskScheduler.Error.unavailable {
            print("no background refresh")
        } catch {
            print(error.localizedDescription)
        }
    }

    func sync() async throws {
        let messages = try await service.newMessages()
        unread += messages
        for message in messages {
            let content = UNMutableNotificationContent()
            content.title = message.sender
            content.body = message.text
            content.sound = .default
            content.categoryIdentifier = Category.message
            content.threadIdentifier = message.conversation
            content.userInfo = ["conversation": message.conversation, "message": message.id]
            content.interruptionLevel = .timeSensitive
            try await center.add(UNNotificationRequest(identifier: "message-\(message.id)", content: content, trigger: nil))
        }
        try await center.setBadgeCount(unread.count)
    }

    private func markAsRead(_ conversation: String) async {
        unread.removeAll { $0.conversation == conversation }
        try? await center.setBadgeCount(unread.count)
        let delivered = await center.deliveredNotifications()
        let identifiers = delivered.filter { $0.request.content.threadIdentifier == conversation }.map(\.request.identifier)
        center.removeDeliveredNotifications(withIdentifiers: identifiers)
    }
}

extension ChatController: UNUserNotificationCenterDelegate {
    func userNotificationCenter(
        _ center: UNUserNotificationCenter, willPresent notification: UNNotification
    ) async -> UNNotificationPresentationOptions { [.banner, .list, .sound, .badge] }

    func userNotificationCenter(_ center: UNUserNotificationCenter, didReceive response: UNNotificationResponse) async {
        guard let conversation = response.notification.request.content.userInfo["conversation"] as? String else { return }
        switch response.actionIdentifier {
        case Action.reply:
            guard let text = (response as? UNTextInputNotificationResponse)?.userText else { return }
            let reply = ChatReply(conversation: conversation, text: text)
            do {
                try await service.send(reply)
                sent.append(reply)
                await markAsRead(conversation)
            } catch {
                print("not sent: \(error)")
            }
        case Action.markAsRead, UNNotificationDefaultActionIdentifier: await markAsRead(conversation)
        case UNNotificationDismissActionIdentifier: break
        default: break
        }
    }
}
