import Foundation

/// One upload's life, whatever its protocol. The rules are each protocol's own: ``FolderUpload``, ``FormUpload``,
/// ``TusUpload``.
///
/// The promise of all: what was sent without an answer is never sent again before the server was asked what it did, where the
/// protocol has such a question; and what is needed to go on is committed before each request.
public enum UploadMachine: Equatable, Sendable {
    case folder(FolderUpload)
    case address(AddressUpload)
    case form(FormUpload)
    case tus(TusUpload)

    /// - Parameter memory: the last committed state of an earlier process; `nil`: a new upload.
    public init(plan: UploadPlan, resuming memory: UploadMemory? = nil, policy: RetryPolicy = .standard) {
        switch plan.kind {
        case .put where AddressUpload.isMeant(by: plan): self = .address(AddressUpload(plan: plan, policy: policy))
        case .put, .webdav: self = .folder(FolderUpload(plan: plan, resuming: memory, policy: policy))
        case .multipart: self = .form(FormUpload(plan: plan, policy: policy))
        case .tus: self = .tus(TusUpload(plan: plan, resuming: memory, policy: policy))
        }
    }

    /// The next request, or the end. Asking twice gives the same answer.
    public mutating func next() -> UploadCommand {
        switch self {
        case .folder(var machine):
            defer { self = .folder(machine) }
            return machine.next()
        case .address(let machine): return machine.next()
        case .form(let machine): return machine.next()
        case .tus(var machine):
            defer { self = .tus(machine) }
            return machine.next()
        }
    }

    /// An attempt ended.
    /// - Parameters:
    ///   - attemptsWithoutProgress: attempts since the last one that brought the upload on.
    ///   - jitter: 0..<1, a random number.
    public mutating func ended(_ end: WireEnd, now: Date, attemptsWithoutProgress: Int, jitter: Double) -> UploadOutcome {
        switch self {
        case .folder(var machine):
            defer { self = .folder(machine) }
            return machine.ended(end, now: now, attemptsWithoutProgress: attemptsWithoutProgress, jitter: jitter)
        case .address(var machine):
            defer { self = .address(machine) }
            return machine.ended(end, now: now, attemptsWithoutProgress: attemptsWithoutProgress, jitter: jitter)
        case .form(var machine):
            defer { self = .form(machine) }
            return machine.ended(end, now: now, attemptsWithoutProgress: attemptsWithoutProgress, jitter: jitter)
        case .tus(var machine):
            defer { self = .tus(machine) }
            return machine.ended(end, now: now, attemptsWithoutProgress: attemptsWithoutProgress, jitter: jitter)
        }
    }

    /// How far it came, in the protocol's own measure: more than ever before is progress. It may fall back, when what was
    /// stored is lost.
    public var stage: Int64 {
        switch self {
        case .folder(let machine): Int64(machine.stage)
        case .address, .form: 0
        case .tus(let machine): machine.stage
        }
    }

    /// Bytes that the server has for good, and that are not sent again.
    public var storedBytes: Int64 {
        switch self {
        case .folder(let machine): machine.storedBytes
        case .address, .form: 0
        case .tus(let machine): machine.storedBytes
        }
    }

    /// How it is known that the server has the whole file.
    public var proof: UploadProof {
        switch self {
        case .folder(let machine): machine.isLengthConfirmed ? .length : .answer
        case .address, .form: .answer
        case .tus: .length
        }
    }

    /// What takes an upload that was given up off the server; `nil`: nothing is there, or it cannot be.
    public var removal: WireRequest? {
        switch self {
        case .folder(let machine): machine.removal
        case .address, .form: nil
        case .tus(let machine): machine.removal
        }
    }
}

/// How it is known that a server has the whole file. From weak to strong.
public enum UploadProof: String, Codable, Sendable {
    /// It said so.
    case answer
    /// It says that it has so many bytes as were to be sent.
    case length
    /// It was read back, or its own digest is ours.
    case digest
}
