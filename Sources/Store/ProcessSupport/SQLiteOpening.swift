import CLinux
import Glibc

/// The system calls by which SQLite opens and reads files in this process. If SQLite cannot open a file for writing, it opens the file
/// read-only and keeps it so. ``call`` prevents this if the file is writable and cannot be opened only for a moment.
package enum SQLiteOpening {
    package static let call: @convention(c) (UnsafePointer<CChar>, CInt, CInt) -> CInt = clinux_open_for_sqlite

    /// The error number of the last call of this thread; 0 if the call succeeded.
    package static var fault: Int32 { clinux_sqlite_open_fault() }

    /// The call by which SQLite reads files in this process.
    package static let readCall: @convention(c) (CInt, UnsafeMutableRawPointer, Int, off_t) -> Int = clinux_pread_for_sqlite

    /// Returns why a read of this thread failed since the last call of this function; 0 if none failed.
    package static func consumeReadFault() -> Int32 { clinux_sqlite_take_read_fault() }
}
