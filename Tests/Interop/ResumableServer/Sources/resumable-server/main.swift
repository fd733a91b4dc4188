// A server that stores uploads in a folder, with Apple's NIOResumableUpload. The name of a complete upload is the last part of
// its URL's path.
//
//     resumable-server FOLDER PORT [PUBLIC-PORT]
import Foundation
import HTTPTypes
import NIOCore
import NIOHTTP1
import NIOHTTPTypes
import NIOHTTPTypesHTTP1
import NIOPosix
import NIOResumableUpload

/// Stores one upload. An upload can consist of many requests.
final class FolderHandler: ChannelInboundHandler {
    typealias InboundIn = HTTPRequestPart
    typealias OutboundOut = HTTPResponsePart

    private let folder: URL
    private var file: (name: String, part: URL, handle: FileHandle)?

    init(_ folder: URL) { self.folder = folder }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let request):
            let name = (request.path ?? "").split(separator: "/").last.flatMap { $0.removingPercentEncoding } ?? ""
            let part = folder.appendingPathComponent(".\(UUID().uuidString)")
            guard request.method == .post, !name.isEmpty, !name.hasPrefix("."), !name.contains("/"),
                FileManager.default.createFile(atPath: part.path, contents: nil),
                let handle = try? FileHandle(forWritingTo: part)
            else { return answer(context, .badRequest) }
            file = (name, part, handle)
        case .body(let bytes):
            try? file?.handle.write(contentsOf: Data(bytes.readableBytesView))
        case .end:
            guard let file else { return }
            try? file.handle.close()
            let isKept = (try? FileManager.default.moveItem(at: file.part, to: folder.appendingPathComponent(file.name))) != nil
            answer(context, isKept ? .created : .conflict)
        }
    }

    private func answer(_ context: ChannelHandlerContext, _ status: HTTPResponse.Status) {
        context.write(wrapOutboundOut(.head(HTTPResponse(status: status, headerFields: [.contentLength: "0"]))), promise: nil)
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
    }
}

let folder = URL(fileURLWithPath: CommandLine.arguments[1])
let port = Int(CommandLine.arguments[2])!
let origin = CommandLine.arguments.count > 3 ? CommandLine.arguments[3] : "\(port)"
let uploads = HTTPResumableUploadContext(origin: "http://127.0.0.1:\(origin)")
let server = try ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
    .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
    .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
            let pipeline = channel.pipeline.syncOperations
            try pipeline.configureHTTPServerPipeline()
            try pipeline.addHandler(HTTP1ToHTTPServerCodec(secure: false))
            try pipeline.addHandler(HTTPResumableUploadHandler(context: uploads, handlers: [FolderHandler(folder)]))
        }
    }
    .bind(host: "127.0.0.1", port: port).wait()
try server.closeFuture.wait()
