import CLinux
import Glibc

/// The system calls with which SQLite opens and reads files in this process. If SQLite cannot open a file for writing, SQLite
/// opens the file read-only, and the connection stays read-only. If the file is writable and the error is temporary, the function
/// ``call`` also returns the error for the read-only attempt. No read-only connection is then created.
package enum SQLiteOpening {
    package static let call: @convention(c) (UnsafePointer<CChar>, CInt, CInt) -> CInt = clinux_open_for_sqlite

    /// The error number of the last call in this thread, or 0 if the call succeeded.
    package static var fault: Int32 { clinux_sqlite_open_fault() }

    /// The system call with which SQLite reads files in this process.
    package static let readCall: @convention(c) (CInt, UnsafeMutableRawPointer, Int, off_t) -> Int = clinux_pread_for_sqlite

    /// Returns the error number of a read that failed in this thread since the last call of this function, or 0 if no read
    /// failed.
    package static func consumeReadFault() -> Int32 { clinux_sqlite_take_read_fault() }
}
