"""Runs the fuzzers one after the other, with seeds that are made here. Exits with 1 if a fuzzer finds an error.

usage: fuzz.py FOLDER SECONDS FUZZER...
"""

import os
import struct
import subprocess
import sys
import tempfile
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "Packaging"))
import warning_regions

# The first byte chooses the receiver of the input. The other bytes are responses (see `answers`), rows or text.
HEADS = [
    b"ETag: \"one\"\nContent-Length: 100\0body",
    b"Content-Range: bytes 100-199/100000\nETag: \"one\"\0" + b"x" * 100,
    b"Content-Range: bytes */100000\0",
    b"Upload-Offset: 5\nUpload-Complete: ?0\nUpload-Draft-Interop-Version: 8\nUpload-Limit: max-size=1, min-size=2\0",
    b"Tus-Resumable: 1.0.0\nLocation: /files/1\nTus-Version: 1.0.0\nTus-Extension: creation,termination\0",
    b"Retry-After: Fri, 31 Dec 1999 23:59:59 GMT\nDate: Fri, 31 Dec 1999 23:59:58 GMT\0",
    b"Repr-Digest: sha-256=:AAAA:, sha-512=:BBBB:\nDigest: SHA-256=CCCC\nContent-MD5: DDDD\0",
    b"Content-Type: application/xml\0<?xml version='1.0'?><d:multistatus xmlns:d='DAV:'><d:response><d:href>/a</d:href>"
    b"<d:propstat><d:prop><d:getcontentlength>5</d:getcontentlength></d:prop></d:propstat></d:response></d:multistatus>",
    b"\0<Error><Code>NoSuchUpload</Code></Error>",
    b"\0<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>",
    b"Content-Type: application/json\0{\"id\":\"1\",\"status\":\"created\"}",
]


def answers(*pairs):
    """Returns responses, one for each step of a protocol. Each has a status, and headers with a body."""
    return b"\x1e".join((status - 100).to_bytes(2, "big") + b"\0\1" + head for status, head in pairs)


def tiff(order):
    """Returns a directory that leads to a directory with a latitude."""
    mark = b"II*\0" if order == "<" else b"MM\0*"
    entry = lambda tag, value: struct.pack(order + "HHII", tag, 4, 1, value)
    return (mark + struct.pack(order + "I", 8) + struct.pack(order + "H", 2) + entry(0x112, 1) + entry(0x8825, 38)
            + struct.pack(order + "I", 0) + struct.pack(order + "H", 1) + entry(2, 0) + struct.pack(order + "I", 0))


def region_table():
    """Returns a table with a region with a hole and an island, a region across the antimeridian, and another code."""
    square = lambda west, south, size: [[west, south], [west + size, south], [west + size, south + size], [west, south + size]]
    regions = [("XX001", "One", [[square(0, 0, 20), square(5, 5, 10)], [square(8, 8, 2)]]), ("XX801", "Sea", [[square(179, 50, 2)]])]
    return (b"SWR1" + struct.pack("<II", len(regions), 1) + b"".join(warning_regions.region(*entry) for entry in regions)
            + warning_regions.text("NUTS3/XX1") + warning_regions.varint(1))


SEEDS = {
    "fuzz-wire": [
        bytes([kind]) + answers((first, head), (second, head), (200, head))
        for kind in range(9) for first, second in ((200, 200), (206, 206), (404, 201), (404, 409), (201, 412), (308, 204), (104, 503))
        for head in HEADS
    ],
    "fuzz-resume": [
        b'{"byteCount":5,"headers":[{"name":"A","value":"b"}],"method":"GET","token":"t","url":"http://a.test/"}',
        b'{"byteCount":5,"headers":[],"method":"GET","token":"t","totalBytes":9,"url":"http://a.test/","partial":{}}',
    ],
    "fuzz-ledger": [
        bytes([table, 40]) + b"\0".join(
            [b"\x011", b"\x04isStormy", b"\x04key", b"\x04download", b"\x04GET", b"\x04http://a.test/", b"\x04[]", b"\x04queued"]
            + [b"\x011"] * 60)
        for table in range(7)
    ],
    "fuzz-configuration": [
        b"\0" + b'{"utc_offset_seconds":3600,"timezone":"Europe/Berlin","hourly_units":{"wind_gusts_10m":"km/h"},'
        b'"hourly":{"time":["2025-06-10T12:00"],"weather_code":[95],"wind_gusts_10m":[99.5],"precipitation":[1]}}',
        b"\0" + b'{"properties":{"meta":{"updated_at":"2026-07-01T12:00:00Z","units":{"wind_speed_of_gust":"m/s"}},"timeseries":['
        b'{"time":"2026-07-01T12:00:00Z","data":{"instant":{"details":{"wind_speed_of_gust":20}},"next_1_hours":{"summary":'
        b'{"symbol_code":"rainandthunder"},"details":{"precipitation_amount":6}}}}]}}',
        b"\0" + b'{"properties":{"updateTime":"2026-07-01T12:00:00+00:00","periods":[{"startTime":"2026-07-01T14:00:00-04:00",'
        b'"shortForecast":"Thunderstorms","windGust":"10 to 35 mph","temperature":70,"temperatureUnit":"F"}]}}',
        b"\0" + b'{"weather":[{"timestamp":"2026-07-01T12:00:00+00:00","condition":"thunderstorm","precipitation":3.2}]}',
        b"\3" + b'<alert xmlns="urn:oasis:names:tc:emergency:cap:1.2"><identifier>a</identifier><sender>b</sender><sent>2026-07-01T12:00:00Z'
        b'</sent><status>Actual</status><msgType>Update</msgType><references>b,c,2026-07-01T11:00:00Z</references><info><event>Gale'
        b'</event><severity>Severe</severity><expires>2026-07-03T12:00:00Z</expires><area><areaDesc>x</areaDesc><polygon>49,9 51,9 '
        b'51,11 49,11</polygon><circle>50,10 20</circle></area></info></alert>',
        b"\4" + b'<feed xmlns="http://www.w3.org/2005/Atom"><entry><link rel="alternate" href="a.xml"/></entry></feed>',
        b"\4" + b'<?xml version="1.0" encoding="ISO-8859-1"?><?xml-stylesheet href="a.xsl"?><!-- \xfc --><!DOCTYPE rss [<!ENTITY a "b">]>'
        b'<rss><channel><item><link><![CDATA[http://a.test/]]></link><guid>&#252;&amp;</guid></item></channel></rss>',
        b"\4" + '<?xml version="1.0" encoding="UTF-16"?><rss><channel><item><link>http://a.test/</link></item></channel></rss>'.encode("utf-16"),
        b"\5" + b'{"features":[{"geometry":{"type":"Polygon","coordinates":[[[9,49],[11,49],[11,51]]]},"properties":{"id":"a","status":'
        b'"Actual","messageType":"Alert","sent":"2026-07-01T12:00:00Z","event":"Gale","severity":"Severe"}}]}',
        b"\5" + b'{"alerts":[{"alert_id":"a","status":"actual","onset":"2026-07-01T12:00:00Z","event_en":"gale","severity":"severe"}]}',
        b"\1" + b'{"results":[{"name":"Storm Bay","latitude":-43.1,"longitude":147.5,"country":"Australia"}]}',
        b"\6" + region_table(),
        b"\7" + b'<feed xmlns="http://www.w3.org/2005/Atom" xmlns:cap="urn:oasis:names:tc:emergency:cap:1.2"><updated>2026-07-01T12:00:00Z'
        b'</updated><entry><cap:geocode><valueName>EMMA_ID</valueName><value>FR035</value></cap:geocode><cap:status>Actual</cap:status>'
        b'<link type="application/cap+xml" href="https://feeds.meteoalarm.org/api/v1/warnings/feeds-france/a"/><title>Orange Wind Warning'
        b'</title><updated>2026-07-01T12:00:00Z</updated></entry><entry><cap:polygon>45,5 47,5 47,7</cap:polygon></entry></feed>',
        b"\2" + b'[weather]\nbase_url = "http://a.test"\n[notifications]\nquiet_hours = "22:00-07:00"\n[background]\ngrace_seconds = 5\n'
        b'[upload.destinations.photos]\nkind = "webdav"\nurl = "https://a.test/dav/"\n',
    ],
    "fuzz-photo": [
        b"\xff\xd8\xff\xe1\0\x40Exif\0\0" + tiff("<"), tiff("<"), tiff(">"),
        b"\x89PNG\r\n\x1a\n\0\0\0\x40eXIf" + tiff(">"), b"RIFF\x40\0\0\0WEBPEXIF\x40\0\0\0" + tiff("<"),
        b"\0\0\0\x18ftypheic\0\0\0\0mif1heic\xa9xyz+52.5+013.4/", b"\0\0\0\x0cJXL \r\n\x87\n\0\0\0\x10brobExif",
        b"\xff\xd8\xff" + "<x drone-dji:GpsLatitude='1'/>".encode("utf-16-le"),
    ],
    # Each container has one corpus.
    "fuzz-locations": {
        "file": [tiff("<"), tiff(">"), b"\xff\xd8\xff\xe1\0\x40Exif\0\0" + tiff("<")],
        "exif": [tiff("<"), tiff(">")],
        "xmp": [b"<x:xmpmeta><exif:GPSLatitude>47,22.2N</exif:GPSLatitude><a photoshop:City='Z'/></x:xmpmeta>"],
        "jpeg": [b"\xff\xed\0\x2aPhotoshop 3.0\x008BIM\4\4\0\0\0\0\0\x0b\x1c\2\x5a\0\6Zurich\0",
                 b"\xff\xe6\0\x1cGoPro\0GPS5l\4\0\1\0\0\0\1", b"\xff\xe1\0\x10FLIR\0\1\0\0FFF\0", b"\xff\xeb\0\x14JP\0\1\0\0\0\1jumbc2pa"],
        "trailer": [b"\0\0\xa1\x0a\x08\0\0\0MCC_Data228SEFH\x6a\0\0\0\1\0\0\0\0\0\xa1\x0a\x13\0\0\0\x13\0\0\0\x18\0\0\0SEFT",
                    b"DEVC\0\1\0\x18DVIDL\4\0\1\0\0\0\1GPS5l\4\0\1\0\0\0\1",
                    b"\7" * 53 + b"\0\7\x35\0\0\0" + bytes(32) + b"\xff\0\0\0\3\0\0\x008db42d694ccc418790edff439fe026bf"],
        "png": [b"tEXtLocation\0Zurich\0\0\0\0", b"eXIf" + tiff(">"), b"zTXtComment\0\0\x78\x9c\3\0\0\0\0\1", b"iTXtXML:com.adobe.xmp\0\0\0\0\0<x/>"],
        "webp": [b"EXIF\x40\0\0\0" + tiff("<"), b"XMP \4\0\0\0<x/>", b"C2PA\x08\0\0\0jumbc2pa"],
        "film": [b"\0\0\0\x1eudta\0\0\0\x16\xa9xyz\0\x0a\0\0+52.5+013.4/", b"\0\0\0\x20udta\0\0\0\x18loci\0\0\0\0\x15\xc7Z\0\0\0\1\0\0\0\1\0\0"],
        "heif": [b"\0\0\0\x1ciinf\0\0\0\0\0\1\0\0\0\x10infe\2\0\0\0\0\1\0\0Exif\0", b"\0\0\0\x20iloc\1\0\0\0\x44\0\0\1\0\1\0\0\0\0\0\1\0\0\0\0\0\0\0\4"],
        "jxl": [b"\0\0\0\x20Exif\0\0\0\0" + tiff("<"), b"\0\0\0\x10brobExif\1\2\3\4", b"\0\0\0\x10jbrd\1\2\3\4\5\6\7\x08"],
        "samples": [b"gpmdDEVC\0\1\0\x18DVIDL\4\0\1\0\0\0\1GPS5l\4\0\1\0\0\0\1", b"camm\0\0\5\0" + bytes(24), b"rtmd\x85\2\0\x08" + bytes(8),
                    b"mebx\0\0\0\x10\0\0\0\1+52.5+01", b"tx3g\0\x10[latitude: 52.5]", b"mettP2\0\x0d", b"gps0" + bytes(8)],
        "raw": [struct.pack(">III", len(tiff("<")), 12, 12 + len(zlib.compress(tiff("<")))) + zlib.compress(tiff("<"))],
    },
}


def main():
    folder, seconds, names = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    failed = []
    for name in names:
        for container, seeds in SEEDS[name].items() if isinstance(SEEDS[name], dict) else [("", SEEDS[name])]:
            if not run(folder, seconds, name, container, seeds):
                failed.append(f"{name} {container}")
    return 1 if failed else 0


def run(folder, seconds, name, container, seeds):
    """Runs one fuzzer. Returns whether the fuzzer found no error."""
    title = f"{name} {container}".strip()
    with tempfile.TemporaryDirectory() as corpus:
        for number, seed in enumerate(seeds):
            with open(os.path.join(corpus, f"seed-{number}"), "wb") as file:
                file.write(seed)
        artifacts = os.path.join(os.getcwd(), folder, "")
        done = subprocess.run(
            [os.path.join(folder, name), f"-max_total_time={seconds}", "-max_len=4096", "-timeout=10", "-rss_limit_mb=4096",
             f"-artifact_prefix={artifacts}{title.replace(' ', '-')}-", "-print_final_stats=1", corpus],
            # Swift's backtrace would run before the fuzzer's handler, and the input that crashed would be lost.
            env=os.environ | {"SWIFT_BACKTRACE": "enable=no"} | ({"FUZZED_CONTAINER": container} if container else {}),
            capture_output=True, text=True, errors="replace")
        runs = [line.split()[-1] for line in done.stderr.splitlines() if "number_of_executed_units" in line]
        places = [line for line in done.stderr.splitlines() if " cov: " in line]
        reached = places[-1].split("cov: ")[1].split()[0] if places else "?"
        print(f"{title}: {runs[0] if runs else '?'} inputs, {reached} edges, " + ("nothing found" if done.returncode == 0 else "FOUND"))
        if done.returncode != 0:
            print(done.stderr[-6000:])
        return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
