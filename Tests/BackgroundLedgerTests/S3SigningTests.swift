import Spool
import Foundation
import Testing
import TransferMachines

@testable import BackgroundLedger

/// The signatures of the first four tests are from "Authenticating Requests: Using the Authorization Header" in the Amazon S3
/// reference.
@Suite struct S3SigningTests {
    private static let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    private static let day = Date(timeIntervalSince1970: 1_369_353_600)

    private func signature(
        _ method: String, _ path: String, _ headers: [HeaderField] = [], payload: String? = empty, token: String? = nil
    ) -> String {
        var request = WireRequest(method: method, url: "https://examplebucket.s3.amazonaws.com\(path)", headers: headers)
        request.signing = S3Signing(
            S3Access(
                bucket: nil, region: "us-east-1", accessKey: "AKIAIOSFODNN7EXAMPLE",
                secretKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", sessionToken: token), payloadSHA256: payload)
        let signed = request.signed(at: Self.day, hashing: CryptoHashing())
        let value = signed.headers.first { $0.name == "Authorization" }?.value ?? ""
        #expect(value.hasPrefix("AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"))
        return value.components(separatedBy: "Signature=").last ?? ""
    }

    @Test func `a GET request with a range has the documented signature`() {
        #expect(
            signature("GET", "/test.txt", [HeaderField("Range", "bytes=0-9")])
                == "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41")
    }

    @Test func `a PUT request with an encoded path has the documented signature`() {
        let headers = [
            HeaderField("Date", "Fri, 24 May 2013 00:00:00 GMT"), HeaderField("x-amz-storage-class", "REDUCED_REDUNDANCY"),
        ]
        // The dollar sign is not encoded in the URL, but is percent-encoded in the signed text.
        #expect(
            signature(
                "PUT", "/test$file.text", headers, payload: "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072")
                == "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd")
    }

    @Test func `a request with a query item without a value has the documented signature`() {
        #expect(
            signature("GET", "/?lifecycle") == "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543")
    }

    @Test func `a request with several query items has the documented signature`() {
        #expect(
            signature("GET", "/?prefix=J&max-keys=2") == "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7")
    }

    @Test func `every part of a request changes its signature`() {
        let one = signature("GET", "/a%20b?x=%2F")
        #expect(signature("GET", "/a%20b?x=/") == one, "an encoded query has the same signature")
        for other in [
            signature("HEAD", "/a%20b?x=%2F"), signature("GET", "/a%20c?x=%2F"), signature("GET", "/a%20b?x=%2F", payload: nil),
            signature("GET", "/a%20b?x=%2F", token: "t"), signature("GET", "/a%20b?x=%2F", [HeaderField("x-amz-meta-a", "1")]),
        ] { #expect(other != one) }
    }

    @Test func `a port other than the default port of the scheme is part of the signed host`() {
        func headers(_ url: String) -> String? {
            var request = WireRequest(method: "GET", url: url)
            request.signing = S3Signing(S3Access(bucket: nil, region: "r", accessKey: "a", secretKey: "s"))
            return request.signed(at: Self.day, hashing: CryptoHashing()).headers.last?.value
        }
        #expect(headers("http://h/x") == headers("http://h:80/x"))
        #expect(headers("http://h:8333/x") != headers("http://h/x"))
    }

    @Test func `a request without signing data is not changed`() {
        let request = WireRequest(method: "GET", url: "https://h/")
        #expect(request.signed(at: Self.day, hashing: CryptoHashing()) == request)
    }
}
