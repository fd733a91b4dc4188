import CLibcurl
import TransferMachines

/// Reads the times that libcurl measured for a transfer.
enum TransferTiming {
    /// Returns the measured times. If several requests were sent, the times belong to the last request.
    static func read(_ easy: UnsafeMutableRawPointer) -> WireTiming {
        var connections = 0
        _ = clibcurl_get_long(easy, CURLINFO_NUM_CONNECTS, &connections)
        var timing = WireTiming(ended: seconds(easy, CURLINFO_TOTAL_TIME_T) ?? 0, isReusedConnection: false)
        timing.requestBegan = seconds(easy, CURLINFO_PRETRANSFER_TIME_T)
        timing.answerBegan = seconds(easy, CURLINFO_STARTTRANSFER_TIME_T)
        timing.isReusedConnection = connections == 0 && timing.requestBegan != nil
        if !timing.isReusedConnection {
            timing.nameResolved = seconds(easy, CURLINFO_NAMELOOKUP_TIME_T)
            timing.connected = seconds(easy, CURLINFO_CONNECT_TIME_T)
            timing.secured = seconds(easy, CURLINFO_APPCONNECT_TIME_T)
        }
        var version = 0
        _ = clibcurl_get_long(easy, CURLINFO_HTTP_VERSION, &version)
        timing.networkProtocol =
            switch version {
            case CURL_HTTP_VERSION_1_0: "http/1.0"
            case CURL_HTTP_VERSION_1_1: "http/1.1"
            case CURL_HTTP_VERSION_2_0: "h2"
            default: nil
            }
        (timing.remoteAddress, timing.remotePort) = (text(easy, CURLINFO_PRIMARY_IP), port(easy, CURLINFO_PRIMARY_PORT))
        (timing.localAddress, timing.localPort) = (text(easy, CURLINFO_LOCAL_IP), port(easy, CURLINFO_LOCAL_PORT))
        return timing
    }

    private static func seconds(_ easy: UnsafeMutableRawPointer, _ information: CURLINFO) -> Double? {
        var microseconds: curl_off_t = 0
        guard clibcurl_get_offset(easy, information, &microseconds) == CURLE_OK, microseconds > 0 else { return nil }
        return Double(microseconds) / 1e6
    }

    private static func text(_ easy: UnsafeMutableRawPointer, _ information: CURLINFO) -> String? {
        var found: UnsafeMutablePointer<CChar>?
        guard clibcurl_get_string(easy, information, &found) == CURLE_OK, let found else { return nil }
        let text = String(cString: found)
        return text.isEmpty ? nil : text
    }

    private static func port(_ easy: UnsafeMutableRawPointer, _ information: CURLINFO) -> Int? {
        var port = 0
        guard clibcurl_get_long(easy, information, &port) == CURLE_OK, port > 0 else { return nil }
        return port
    }
}
