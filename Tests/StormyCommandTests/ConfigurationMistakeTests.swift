import BackgroundCommands
import Foundation
import ProcessSupport
import StormyConfiguration
import Testing

@testable import StormyCommand

/// Tests the output of commands if the file `config.toml` has a mistake.
@Suite(.timeLimit(.minutes(30))) struct ConfigurationMistakeTests {
    @Test(arguments: [
        ("[weather]\nprovidre = \"open-meteo\"\n", ":2:1:", "provider"),
        ("[storm]\n\ngust_kmh = 5\n", ":3:1:", "did you mean \"storm.gusts_kmh\"?"),
        ("[storm]\ngusts_kmh = \"much\"\n", ":2:", "gusts_kmh"),
        ("[wether]\n", ":1:", "weather"),
        ("[background\n", ":1:", "TOML"),
        ("[notifications]\nquiet_hours = \"late\"\n", ":2:", "quiet_hours"),
    ])
    func `a mistake in the configuration is reported with its line`(_ text: String, _ place: String, _ word: String)
        async throws
    {
        try await VirtualHome.play { home in
            await home.setStartsAgents(false)
            try home.configure(text)
            for command in ["status", "check", "history", "schedule"] {
                let result = try await home.stormy(command)
                #expect(result.status == 78)
                #expect(result.errors.contains("config.toml\(place)"), "\(result.errors)")
                #expect(result.errors.contains(word), "\(result.errors)")
                #expect(result.output.isEmpty)
            }
        }
    }

    @Test(arguments: [("user = \"me\"", "needs password_file"), ("password = \"secret\"", "needs user")])
    func `a user without a password and a password without a user are refused`(_ line: String, _ words: String) async throws {
        try await VirtualHome.play(PhotoHome.destination() + line + "\n") { home in
            await home.setStartsAgents(false)
            let photo = try home.picture("a.jpg")
            for command in [["config", "--check"], ["upload", photo.path]] {
                let result = try await home.stormy(command)
                #expect(result.status == 78 && result.errors.contains("upload.destinations.home \(words)"), "\(result)")
                #expect(!result.errors.contains("secret"), "\(result)")
            }
        }
    }

    @Test func `a configuration with an S3 access key that other users can read does not stop commands`() async throws {
        try await VirtualHome.play { home in
            try home.configure(
                """
                [upload.destinations.s3]
                kind = "s3"
                url = "http://127.0.0.1:1/"
                bucket = "b"
                access_key = "AKIA"
                secret_key_file = "\(home.folder.path)/key"

                """)
            chmod(home.directories.configuration.path + "/config.toml", 0o644)
            for command in ["why", "history", "status"] { #expect(try await home.stormy(command).status == 0, "\(command)") }
        }
    }

    @Test func `a password that other users can read is refused`() async throws {
        try await VirtualHome.play { home in
            await home.setStartsAgents(false)
            try home.configure(
                "[upload.destinations.home]\nkind = \"webdav\"\nurl = \"http://127.0.0.1:1/\"\nuser = \"me\"\npassword = \"secret\"\n"
            )
            #expect(try await home.stormy("status").status == 0)
            chmod(home.directories.configuration.path + "/config.toml", 0o644)
            let result = try await home.stormy("status")
            #expect(result.status == 78)
            #expect(result.errors.contains("chmod 600") && !result.errors.contains("secret"))
        }
    }

    /// The configuration cannot be read because of a disk error or a limit of open files. The user made no mistake in the file.
    @Test(arguments: [
        (EMFILE, 75), (ENFILE, 75), (ENOMEM, 75), (EIO, 74), (ESTALE, 74), (EACCES, 78), (ELOOP, 78), (EISDIR, 78),
    ])
    func `a configuration that cannot be read now is tried again`(_ number: Int32, _ status: Int) {
        let failure = CommandFailure(ofStormy: ConfigurationError(.init(number), path: "config.toml"))
        #expect(Int(failure.status.rawValue) == status)
        #expect(failure.message == "config.toml: cannot be read: " + String(cString: strerror(number)))
    }
}
