import Foundation
import Testing

extension EndToEnd {
    /// Tests with two disks: a disk with free bytes but without free inodes, and a disk without free bytes.
    @Suite(.enabled(if: Namespaces.areAllowed)) struct NoFilesLeft {
        /// The agent is killed, because it would keep the ledger open. All files that the commands need already exist.
        @Test func `commands work on a disk without free inodes`() throws {
            let home = try Home()
            let (tool, files) = (Home.product("stormy"), home.folder.path)
            let photo = home.folder.appendingPathComponent("a.jpg")
            try JPEG.withoutPosition.write(to: photo)
            try home.configure("[upload.destinations.none]\nkind = \"multipart\"\nurl = \"http://127.0.0.1:9/\"\n")
            let script = """
                mkdir '\(files)/small' && mount -t tmpfs -o size=40m,nr_inodes=70,mode=700 none '\(files)/small' || exit 9
                export XDG_STATE_HOME='\(files)/small/state' XDG_DATA_HOME='\(files)/small/data'
                '\(tool)' place add Sydney -33.87,151.21 > '\(files)/log' 2>&1
                '\(tool)' schedule > '\(files)/log' 2>&1
                '\(tool)' upload '\(photo.path)' > '\(files)/log' 2>&1
                pid=$('\(tool)' status | sed -n 's/.*running, pid \\([0-9]*\\).*/\\1/p')
                # The kernel releases the lock of a killed process after everything else.
                kill -9 $pid; while STORMY_NO_AGENT=1 '\(tool)' status | grep -q 'running, pid'; do sleep 0.05; done
                n=0; while touch '\(files)/small/fill'$n; do n=$((n+1)); done 2> '\(files)/log'
                '\(tool)' doctor | grep -e 'disk:' -e 'store:' -e damaged
                for verb in status 'place list' transfers 'transfers cancel all' unschedule 'upload \(photo.path)' quit; do
                  '\(tool)' $verb > '\(files)/out' 2>&1; echo "$verb: $?"; grep -h 'space' '\(files)/out'
                done
                rm '\(files)/small/'fill*
                '\(tool)' status > '\(files)/out' 2>&1; echo "after: $?"
                '\(tool)' quit
                """
            let result = try Child.run("unshare", Namespaces.withOwnMounts(script), environment: home.environment)
            let lines = result.output.split(separator: "\n").map(String.init)
            for verb in ["status", "place list", "transfers", "transfers cancel all", "unschedule", "quit", "after"] {
                #expect(lines.contains("\(verb): 0"), "\(verb): \(result)")
            }
            #expect(!lines.contains("upload \(photo.path): 0"), "\(result)")
            #expect(lines.contains { $0.contains(photo.path) && $0.contains("no space is left") }, "\(result)")
            #expect(lines.contains { $0.hasPrefix("✗ disk:") } && !lines.contains { $0.contains("damaged") }, "\(result)")
        }

        /// The disk has room for only one of the photos. The message contains the name of the other photo.
        @Test func `a photo that does not fit on the disk is named`() throws {
            let home = try Home()
            let (tool, files) = (Home.product("stormy"), home.folder.path)
            for (fill, name) in [(1, "a.jpg"), (2, "b.jpg")] as [(UInt8, String)] {
                try (JPEG.withoutPosition + Data(repeating: fill, count: 4_000_000)).write(
                    to: home.folder.appendingPathComponent(name))
            }
            try home.configure("[upload.destinations.none]\nkind = \"multipart\"\nurl = \"http://127.0.0.1:9/\"\n")
            let script = """
                mkdir '\(files)/small' && mount -t tmpfs -o size=7m,mode=700 none '\(files)/small' || exit 9
                export XDG_STATE_HOME='\(files)/small/state' STORMY_NO_AGENT=1
                '\(tool)' upload '\(files)/a.jpg' '\(files)/b.jpg' 2>&1; echo "status $?"
                """
            let result = try Child.run("unshare", Namespaces.withOwnMounts(script), environment: home.environment)
            let named = ["a", "b"].filter { result.output.contains("/\($0).jpg was not queued: no space is left") }
            #expect(named.count == 1 && result.output.contains("status 73"), "\(result)")
        }
    }
}
