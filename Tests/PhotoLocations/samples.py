#!/usr/bin/env python3
"""Makes photos and films with a location, with common tools: ExifTool, ImageMagick, ffmpeg, libheif, libavif, libwebp, libjxl.

usage: samples.py FOLDER

The script reports missing tools and does not make their files.
"""
import base64, hashlib, os, shutil, struct, subprocess, sys, zlib

LATITUDE, LONGITUDE = 47.370094, 8.549106
PLACE = "+47.3701+008.5491+408.000/"


def run(*command, check=True):
    result = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if check and result.returncode != 0:
        raise RuntimeError(f"{command}: {result.stdout.decode(errors='replace')[-400:]}")
    return result.stdout


def tag(path, *tags):
    run("exiftool", "-q", "-m", "-overwrite_original", "-n", *tags, path)


GPS = [f"-GPSLatitude={LATITUDE}", "-GPSLatitudeRef=N", f"-GPSLongitude={LONGITUDE}", "-GPSLongitudeRef=E", "-GPSAltitude=408",
       "-GPSProcessingMethod=GPS", "-GPSAreaInformation=Zurich", "-GPSDateStamp=2026:07:01"]
XMP = [f"-XMP-exif:GPSLatitude={LATITUDE}", f"-XMP-exif:GPSLongitude={LONGITUDE}", "-XMP-photoshop:City=Zurich", "-XMP-photoshop:Country=Switzerland",
       "-XMP-iptcCore:Location=Bellevue", "-XMP-iptcExt:LocationShownCity=Zurich", "-XMP-iptcExt:LocationCreatedGPSLatitude=47.37", "-XMP-dc:Title=Hail"]
IPTC = ["-IPTC:City=Zurich", "-IPTC:Sub-location=Bellevue", "-IPTC:Country-PrimaryLocationName=Switzerland", "-IPTC:Caption-Abstract=Hail"]
KEPT = ["-Orientation=6", "-Artist=A. Storm", "-DateTimeOriginal=2026:07:01 12:00:00", "-Make=Test", "-Model=Camera"]


class Samples:
    def __init__(self, folder):
        self.folder = folder
        os.makedirs(folder, exist_ok=True)
        self.plain = os.path.join(folder, ".plain.png")
        run("convert", "-size", "96x64", "-seed", "7", "plasma:red-blue", "-strip", self.plain)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, data):
        with open(self.path(name), "wb") as file:
            file.write(data)

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def convert(self, name, *options):
        run("convert", self.plain, *options, self.path(name))
        return self.path(name)

    def pictures(self):
        for kind, options in [("jpg", []), ("png", []), ("webp", []), ("tif", []), ("heic", []), ("avif", []), ("progressive.jpg", ["-interlace", "JPEG"]),
                              ("lzw.tif", ["-compress", "LZW"]), ("jpeg.tif", ["-compress", "JPEG"]), ("tiles.tif", ["-define", "tiff:tile-geometry=32x32"]),
                              ("big.tif", ["-endian", "MSB"]), ("lossless.webp", ["-define", "webp:lossless=true"]), ("16.png", ["-depth", "16"]),
                              ("gray.jpg", ["-colorspace", "Gray"]), ("cmyk.jpg", ["-colorspace", "CMYK"]), ("alpha.png", ["-alpha", "set"]),
                              ("indexed.png", ["-colors", "16"]), ("interlaced.png", ["-interlace", "PNG"]), ("zip.tif", ["-compress", "Zip"]),
                              ("rle.tif", ["-compress", "RLE"]), ("float.tif", ["-depth", "32", "-define", "quantum:format=floating-point"]),
                              ("gray.tif", ["-colorspace", "Gray", "-depth", "16"]), ("alpha.webp", ["-alpha", "set"]), ("low.heic", ["-quality", "20"]),
                              ("low.avif", ["-quality", "20"]), ("restart.jpg", ["-define", "jpeg:restart-interval=4"]), ("444.jpg", ["-sampling-factor", "4:4:4"])]:
            for suffix, tags in [("gps", GPS + KEPT), ("xmp", XMP + KEPT), ("iptc", IPTC), ("all", GPS + XMP + IPTC + KEPT), ("none", KEPT)]:
                if kind == "tiles.tif" and suffix != "all":
                    continue
                name = f"{suffix}.{kind}"
                tag(self.convert(name, *options), *tags)
        run("convert", self.plain, "(", self.plain, "-negate", ")", "-adjoin", self.path("pages.tif"))
        tag(self.path("pages.tif"), *GPS, *XMP)
        run("convert", self.plain, "TIFF64:" + self.path("bigtiff.tif"))
        run("convert", self.path("all.jpg"), self.path("profiles.png"))  # raw profiles
        run("convert", self.path("all.tif"), self.path("profiles.webp"))
        tag(self.convert("compressed.png"), *XMP)
        run("exiftool", "-q", "-m", "-overwrite_original", "-z", "-n", *XMP, *GPS, self.convert("deflated.png"))
        tag(self.convert("text.png"), "-PNG:Comment=latitude: 47.370094 longitude: 8.549106", "-PNG:Description=A storm")
        tag(self.convert("southwest.jpg"), "-GPSLatitude=33.856784", "-GPSLatitudeRef=S", "-GPSLongitude=70.648923", "-GPSLongitudeRef=W")
        tag(self.convert("destination.jpg"), "-GPSDestLatitude=33.856784", "-GPSDestLatitudeRef=S", "-GPSDestLongitude=70.648923", "-GPSDestLongitudeRef=W")

    def jpegs(self):
        # A second copy of the metadata: in the thumbnail, in MPF's second picture, and in Photoshop's resources.
        tag(self.convert("thumb.jpg"), *GPS)
        shutil.copy(self.path("thumb.jpg"), self.path("outer.jpg"))
        run("exiftool", "-q", "-overwrite_original", f"-ThumbnailImage<={self.path('gps.jpg')}", self.path("outer.jpg"))
        plain = self.convert("base.jpg", "-quality", "80")
        base, located = self.read("base.jpg"), self.read("all.jpg")
        self.write("behind.jpg", base + located)
        self.write("behind-twice.jpg", located + located + base)
        self.write("zip.jpg", located + b"PK\x03\x04" + os.urandom(60))
        self.write("html.jpg", base + b"<html>latitude=47.370094, longitude=8.549106</html>")
        self.write("flashpix.jpg", self.segment(base, 0xE2, b"FPXR\0" + b"\0\x01" + self.tiff(located)))
        self.write("app3.jpg", self.segment(base, 0xE3, b"Meta\0\0" + self.tiff(located)))
        self.write("app5.jpg", self.segment(base, 0xE5, b"RMETA\0" + b"\x01" * 7 + self.tiff(located)))
        self.write("gopro.jpg", self.segment(base, 0xE6, b"GoPro\0" + gpmf()))
        self.write("comment.jpg", self.segment(base, 0xFE, b"taken at {\"latitude\": 47.370094, \"longitude\": 8.549106}"))
        self.write("two-exif.jpg", self.segment(self.segment(base, 0xE1, b"Exif\0\0" + self.tiff(located)), 0xE1, b"Exif\0\0" + self.tiff(located)))
        packet = self.xmp(located)
        for prefix in ["foo", "e", "gps-x"]:
            self.write(f"prefix-{prefix}.jpg", self.segment(base, 0xE1, XAP + packet.replace(b"exif:", prefix.encode() + b":").replace(b"xmlns:exif=", b"xmlns:" + prefix.encode() + b"=")))
        text = packet.decode()
        text = text[text.index("<x:xmpmeta"):text.index("</x:xmpmeta>") + 12]
        self.write("utf16le.jpg", self.segment(base, 0xE1, XAP + b"\xff\xfe" + text.encode("utf-16-le")))
        self.write("utf16be.jpg", self.segment(base, 0xE1, XAP + b"\xfe\xff" + text.encode("utf-16-be")))
        self.write("extended.jpg", self.extended(base, text))
        self.write("embedded.jpg", self.extended(base, wrap(f'<a:Data xmlns:a="http://ns.google.com/photos/1.0/image/">{base64.b64encode(located).decode()}</a:Data>')))
        self.write("geo.jpg", self.segment(base, 0xE1, XAP + wrap('<w:lat xmlns:w="http://www.w3.org/2003/01/geo/wgs84_pos#">47.370094</w:lat><w:long xmlns:w="http://www.w3.org/2003/01/geo/wgs84_pos#">8.549106</w:long>').encode()))
        self.write("samsung.jpg", base + samsung([(0x0A01, b"Image_UTC_Data", b"1764158400000"), (0x0AA1, b"MCC_Data", b"228"), (1, b"Image", located)]))
        self.write("insta360.jpg", base + insta360())
        self.write("iptc-twice.jpg", self.segment(self.segment(base, 0xED, iptc()), 0xED, iptc()))
        self.write("c2pa.jpg", self.segment(located, 0xEB, b"JP\0\x01\0\0\0\x01" + struct.pack(">I", 120) + b"jumb" + struct.pack(">I", 40) + b"jumdc2pa" + b"x" * 100))
        self.write("flir.jpg", self.segment(base, 0xE1, b"FLIR\0\x01\0\0" + flir()))
        self.write("flir-split.jpg", self.segment(self.segment(base, 0xE1, b"FLIR\0\x01\x01\x01" + flir()[100:]), 0xE1, b"FLIR\0\x01\0\x01" + flir()[:100]))
        self.write("unknown.bin", b"unknown" * 10 + located)

    def raws(self):
        little = self.read("all.tif")
        for name, mark in [("raw.orf", b"IIRO"), ("raw.rw2", b"IIU\0")]:
            self.write(name, mark + little[4:])
        for name, make in [("raw.nef", "NIKON CORPORATION"), ("raw.arw", "SONY"), ("raw.dng", "Adobe"), ("raw.cr2", "Canon"), ("raw.pef", "PENTAX"), ("raw.srw", "SAMSUNG")]:
            shutil.copy(self.path("gps.tif"), self.path(name + ".tif"))
            tag(self.path(name + ".tif"), f"-Make={make}", *XMP)
            os.rename(self.path(name + ".tif"), self.path(name))
        # DNG files in the form of Adobe's converter. The files contain the raw file with its small picture, and have previews in
        # other directories.
        for name, raw, level in [("embedded.dng", self.read("raw.nef"), 6), ("embedded-cr2.dng", self.read("raw.cr2") * 3, 9), ("embedded-jpeg.dng", self.read("all.jpg"), 9)]:
            self.write(name, embed(self.read("raw.dng"), raw, self.read("gps.jpg"), level))
        self.write("preview.dng", preview(self.read("raw.dng"), self.read("all.jpg")))
        self.write("preview-embedded.dng", embed(preview(self.read("raw.dng"), self.read("all.jpg")), self.read("raw.arw"), self.read("gps.jpg"), 9))
        header = b"FUJIFILMCCD-RAW 0201FF000000Camera".ljust(84, b"\0")
        jpeg = self.read("all.jpg")
        self.write("raw.raf", header + struct.pack(">II", 160, len(jpeg)) + bytes(68) + jpeg + bytes(1000))

    def films(self):
        for kind in ["mp4", "mov"]:
            run("ffmpeg", "-v", "error", "-y", "-f", "lavfi", "-i", "testsrc=size=64x48:rate=5:duration=1", "-c:v", "libx264", "-pix_fmt", "yuv420p",
                "-metadata", f"location={PLACE}", "-metadata", "location-eng=" + PLACE, "-metadata", "title=Hail", self.path(f"udta.{kind}"))
            run("ffmpeg", "-v", "error", "-y", "-i", self.path(f"udta.{kind}"), "-c", "copy", "-movflags", "use_metadata_tags",
                "-metadata", f"com.apple.quicktime.location.ISO6709={PLACE}", "-metadata", "com.apple.quicktime.make=Test", self.path(f"keys.{kind}"))
            run("ffmpeg", "-v", "error", "-y", "-i", self.path(f"udta.{kind}"), "-map_metadata", "-1", "-c", "copy", self.path(f"plain.{kind}"))
            shutil.copy(self.path(f"udta.{kind}"), self.path(f"all.{kind}"))
            tag(self.path(f"all.{kind}"), f"-Keys:GPSCoordinates={LATITUDE} {LONGITUDE} 408", f"-ItemList:GPSCoordinates={LATITUDE} {LONGITUDE} 408",
                f"-UserData:GPSCoordinates={LATITUDE} {LONGITUDE} 408", "-UserData:LocationInformation=Zurich Role=shooting Lat=47.37 Lon=8.55 Alt=408 Body=earth Notes=x", *XMP)
        film = self.read("udta.mp4")
        self.write("motion.jpg", self.read("all.jpg") + film)
        self.write("samsung-motion.jpg", self.read("base.jpg") + samsung([(0x0A30, b"MotionPhoto_Data", film)]))
        mov = self.read("udta.mov")
        self.write("no-ftyp.mov", mov[struct.unpack(">I", mov[:4])[0]:])
        srt = self.path(".telemetry.srt")
        with open(srt, "w") as file:
            file.write("1\n00:00:00,000 --> 00:00:01,000\nGPS(8.549106,47.370094,20) D 5.2m\n\n2\n00:00:01,000 --> 00:00:02,000\n[latitude: 47.370094] [longitude: 8.549106]\n")
        run("ffmpeg", "-v", "error", "-y", "-i", self.path("udta.mp4"), "-i", srt, "-c:v", "copy", "-c:s", "mov_text", self.path("subtitles.mp4"))
        self.write("insta360.mp4", film + insta360())
        for name, format, samples in [("gpmd.mp4", b"gpmd", [gpmf(), gpmf()]), ("camm.mp4", b"camm", [struct.pack("<HHddd", 0, 5, LATITUDE, LONGITUDE, 408.0)] * 3), ("mebx.mov", b"mebx", None)]:
            self.write(name, timed(format, samples))
        self.write("cr3.cr3", cr3(self.read("gps.tif"), self.tiff(self.read("all.jpg"))))

    def jpeg2000(self):
        if not shutil.which("opj_compress") and b"JP2" not in run("convert", "-list", "format"): raise RuntimeError("no encoder of JPEG 2000")
        texts = {"words": f"Latitude: {LATITUDE} Longitude: {LONGITUDE}", "uri": f"geo:{LATITUDE},{LONGITUDE}", "iso": "+47.3701+008.5491/",
                 "link": f"https://maps.google.com/?q={LATITUDE},{LONGITUDE}", "none": "Hail"}
        for kind in ["jp2", "j2k"]:
            for name, text in texts.items(): self.convert(f"comment-{name}.{kind}", "-set", "comment", text)
        self.write("behind.j2k", self.read("comment-none.j2k") + self.read("all.jpg"))
        picture = self.read("comment-iso.j2k")
        self.write("strip.tif", append(self.read("none.tif"), [(0x103, 3, 1, struct.pack("<H", 34712)), (0x111, 4, 1, struct.pack("<I", len(self.read("none.tif")))), (0x117, 4, 1, struct.pack("<I", len(picture)))], picture))

    def matroska(self):
        for kind in ["mkv", "webm"]:
            for name, tags in [("location", ["-metadata", f"location={PLACE}"]), ("comment", ["-metadata", "comment=+47.3701+008.5491/"]), ("title", ["-metadata", "title=geo:47.370094,8.549106"]),
                               ("words", ["-metadata", f"latitude={LATITUDE}", "-metadata", f"longitude={LONGITUDE}"]), ("none", ["-metadata", "title=Hail", "-metadata", "comment=A storm"])]:
                run("ffmpeg", "-v", "error", "-y", "-f", "lavfi", "-i", "testsrc=size=64x48:rate=5:duration=1", "-c:v", "libvpx", *tags, self.path(f"{name}.{kind}"))

    def unnamed(self):
        film = self.read("subtitles.mp4")
        sentence = b"$GPRMC,123519,A,4722.2056,N,00832.9464,E,022.4,084.4,230394,003.1,W*64\r\n"
        self.write("mdat.mp4", self.read("plain.mp4") + box(b"mdat", sentence * 4))
        self.write("mdat-json.mp4", self.read("plain.mp4") + box(b"mdat", b'{"latitude":47.370094,"longitude":8.549106}'))
        self.write("mdat-jpeg.mov", self.read("plain.mov") + box(b"mdat", self.read("all.jpg")))
        self.write("subtitles-mdat.mp4", film + box(b"mdat", sentence))

    def others(self):
        number = lambda name, value: name + b"\0float\0" + struct.pack("<If", 4, value)
        self.write("attributes.exr", b"\x76\x2f\x31\x01\x02\0\0\0" + number(b"latitude", LATITUDE) + number(b"longitude", LONGITUDE) + bytes(50))
        cards = [b"SIMPLE  =                    T", b"BITPIX  =                    8", b"NAXIS   =                    0", b"OBSGEO-B=            47.370094", b"OBSGEO-L=             8.549106", b"END"]
        self.write("observatory.fits", b"".join(card.ljust(80) for card in cards).ljust(2880))

    def jxl(self):
        run("cjxl", "--quiet", "-d", "0", "--container=1", self.plain, self.path("plain.jxl")) if shutil.which("cjxl") else None
        tag(self.path("plain.jxl"), *GPS, *XMP)
        os.rename(self.path("plain.jxl"), self.path("all.jxl"))
        run("cjxl", "--quiet", self.path("all.jpg"), self.path("jpeg.jxl"))
        run("cjxl", "--quiet", "--compress_boxes=0", self.path("all.jpg"), self.path("jpeg-plain.jxl"), check=False)
        # In a codestream without boxes, a parser cannot find the end of the codestream.
        run("cjxl", "--quiet", "--container=0", self.plain, self.path("bare.jxl"))
        exif = b"\0\0\0\0" + self.tiff(self.read("all.jpg"))
        for name, behind in [("jpeg", self.read("all.jpg")), ("exif", box(b"Exif", exif)), ("text", b"latitude=47.370094, longitude=8.549106")]:
            self.write(f"bare-{name}.jxl", self.read("bare.jxl") + behind)
        for number in range(50):
            size = f"{40 + 7 * number}x{30 + 5 * number}"
            run("convert", "-size", size, "-seed", number, "xc:gray", "+noise", ["Random", "Gaussian", "Poisson"][number % 3], self.path(".noise.png"))
            run("cjxl", "--quiet", "--container=0", "-d", ["0", "1", "4"][number // 3 % 3], self.path(".noise.png"), self.path(f"noise-{number}.jxl"))

    def items(self):
        for name, source in [("heif-enc.heic", "all.jpg"), ("heif-thumb.heic", "all.jpg")]:
            run("heif-enc", "-q", "60", *(["-t", "32"] if "thumb" in name else []), self.path(source), "-o", self.path(name))
        run("avifenc", "-s", "10", self.path("all.jpg"), self.path("avifenc.avif"))
        run("cwebp", "-quiet", "-metadata", "all", self.path("all.jpg"), "-o", self.path("cwebp.webp"))

    def tiff(self, jpeg):
        start = jpeg.index(b"Exif\0\0")
        size = struct.unpack(">H", jpeg[start - 2:start])[0]
        return jpeg[start + 6:start - 2 + size]

    def xmp(self, jpeg):
        start = jpeg.index(XAP)
        size = struct.unpack(">H", jpeg[start - 2:start])[0]
        return jpeg[start + len(XAP):start - 2 + size]

    def segment(self, jpeg, marker, content):
        return jpeg[:2] + bytes([0xFF, marker]) + struct.pack(">H", len(content) + 2) + content + jpeg[2:]

    def extended(self, jpeg, text):
        text = text.encode()
        digest = hashlib.md5(text).hexdigest().upper().encode()
        main = wrap('<rdf:li/>', f'xmlns:xmpNote="http://ns.adobe.com/xmp/note/" xmpNote:HasExtendedXMP="{digest.decode()}"').encode()
        half = len(text) // 2 + 3
        for offset in [half, 0]:
            part = text[offset:half if offset == 0 else None]
            for start in reversed(range(0, len(part), 60_000)):
                content = EXTENDED + digest + struct.pack(">II", len(text), offset + start) + part[start:start + 60_000]
                jpeg = self.segment(jpeg, 0xE1, content)
        return self.segment(jpeg, 0xE1, XAP + main)


XAP, EXTENDED = b"http://ns.adobe.com/xap/1.0/\0", b"http://ns.adobe.com/xmp/extension/\0"


def wrap(content, attributes=""):
    return f'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description rdf:about="" {attributes}>{content}</rdf:Description></rdf:RDF></x:xmpmeta>'


def append(tiff, values, data=b""):
    """Appends data to a TIFF file and adds entries (number, type, count, value) to its first directory, which moves to the end."""
    order = "<" if tiff[:2] == b"II" else ">"
    first, = struct.unpack(order + "I", tiff[4:8])
    count, = struct.unpack(order + "H", tiff[first:first + 2])
    entries = [tiff[start:start + 12] for start in range(first + 2, first + 2 + 12 * count, 12)]
    result = tiff + data
    result += b"\0" * (len(result) % 2)
    for number, kind, items, value in values:
        entries = [entry for entry in entries if struct.unpack(order + "H", entry[:2])[0] != number]
        if len(value) > 4:
            place, result = len(result), result + value + b"\0" * (len(value) % 2)
            value = struct.pack(order + "I", place)
        entries.append(struct.pack(order + "HHI", number, kind, items) + value.ljust(4, b"\0"))
    entries.sort(key=lambda entry: struct.unpack(order + "H", entry[:2])[0])
    place, rest = len(result), tiff[first + 2 + 12 * count:first + 6 + 12 * count]
    return result[:4] + struct.pack(order + "I", place) + result[8:] + struct.pack(order + "H", len(entries)) + b"".join(entries) + rest


def embed(tiff, raw, small, level):
    """Returns a DNG file with the original raw file (OriginalRawFileData) and the MD5 of the original."""
    def fork(data):
        blocks = [zlib.compress(data[start:start + 65536], level) for start in range(0, len(data), 65536)]
        offsets = [4 * (len(blocks) + 2)]
        for block in blocks: offsets.append(offsets[-1] + len(block))
        return struct.pack(f">{len(offsets) + 1}I", len(data), *offsets) + b"".join(blocks)
    value = fork(raw) + bytes(12) + fork(small) + bytes(12)
    return append(tiff, [(0xC68C, 7, len(value), value), (0xC71D, 1, 16, hashlib.md5(value).digest())])


def preview(tiff, jpeg):
    """Returns a DNG file with a picture in a subdirectory of the first directory."""
    order = "<" if tiff[:2] == b"II" else ">"
    tiff += b"\0" * (len(tiff) % 2)
    place = len(tiff) + len(jpeg) + len(jpeg) % 2
    entries = [(0xFE, 4, 1, 1), (0x103, 3, 1, 7 if order == "<" else 7 << 16), (0x111, 4, 1, len(tiff)), (0x117, 4, 1, len(jpeg))]
    directory = struct.pack(order + "H", len(entries)) + b"".join(struct.pack(order + "HHII", *entry) for entry in entries) + bytes(4)
    return append(tiff + jpeg + b"\0" * (len(jpeg) % 2) + directory, [(0x14A, 4, 1, struct.pack(order + "I", place))])


def iptc():
    def dataset(number, value):
        return bytes([0x1C, 2, number]) + struct.pack(">H", len(value)) + value
    block = dataset(90, b"Zurich") + dataset(120, b"Hail") + dataset(101, b"Switzerland")
    block += b"\0" * (len(block) % 2)
    return b"Photoshop 3.0\0" + b"8BIM\x04\x04\0\0" + struct.pack(">I", len(block)) + block


def klv(name, type, size, count, data):
    return name + bytes([type, size]) + struct.pack(">H", count) + data + b"\0" * (-len(data) % 4)


def gpmf():
    values = struct.pack(">iiiii", int(LATITUDE * 1e7), int(LONGITUDE * 1e7), 408000, 100, 10)
    stream = klv(b"SCAL", ord("l"), 4, 5, struct.pack(">5i", 10000000, 10000000, 1000, 1000, 100)) + klv(b"GPSF", ord("L"), 4, 1, struct.pack(">I", 3)) \
        + klv(b"GPS5", ord("l"), 20, 2, values * 2)
    content = klv(b"DVID", ord("L"), 4, 1, b"\0\0\0\1") + klv(b"DVNM", ord("c"), 1, 6, b"Camera") + klv(b"STRM", 0, 1, len(stream), stream)
    return klv(b"DEVC", 0, 1, len(content), content)


def flir():
    record = bytearray(96)
    record[0:4] = struct.pack("<I", 1)
    record[4:8], record[8:12] = b"\0\0\2\2", b"N\0E\0"
    record[16:40] = struct.pack("<ddf", LATITUDE, LONGITUDE, 408.0) + b"\0\0\0\0"
    header = b"FFF\0" + b"CAMERA".ljust(16, b"\0") + struct.pack(">III", 101, 64, 1)
    return header.ljust(64, b"\0") + struct.pack(">HHIIII", 0x2B, 0, 0, 0, 96, 96).ljust(32, b"\0") + bytes(record)


def samsung(blocks):
    data, entries, starts = b"", b"", []
    for kind, name, value in blocks:
        starts.append((kind, len(data), 8 + len(name) + len(value)))
        data += struct.pack("<HHI", 0, kind, len(name)) + name + value
    for kind, start, size in starts:
        entries += struct.pack("<HHII", 0, kind, len(data) - start, size)
    listing = b"SEFH" + struct.pack("<II", 106, len(blocks)) + entries
    return data + listing + struct.pack("<I", len(listing)) + b"SEFT"


def insta360():
    record = b"".join(struct.pack("<IIH", 1764158400 + n, 0, 0) + b"A" + struct.pack("<d", LATITUDE) + b"N" + struct.pack("<d", LONGITUDE) + b"E" + struct.pack("<ddd", 1.0, 2.0, 408.0) for n in range(4))
    body = record
    footer = struct.pack("<HI", 0x700, len(record)).ljust(38, b"\0") + struct.pack("<I", len(body) + 78) + struct.pack("<I", 3) + b"8db42d694ccc418790edff439fe026bf"
    return body + footer


def box(type, content):
    return struct.pack(">I", len(content) + 8) + type + content


def timed(format, samples):
    if format == b"mebx":
        key = box(b"keyd", b"mdtacom.apple.quicktime.location.ISO6709") + box(b"dtyp", struct.pack(">II", 0, 1))
        description = box(b"keys", struct.pack(">II", len(key) + 8, 1) + key)
        samples = [struct.pack(">II", len(PLACE) + 8, 1) + PLACE.encode()] * 2
    else:
        description = b""
    ftyp = box(b"ftyp", b"isom\0\0\2\0isommp42")
    data = b"".join(samples)
    stsd = box(b"stsd", struct.pack(">II", 0, 1) + box(format, b"\0" * 6 + b"\0\1" + description))
    stsz = box(b"stsz", struct.pack(">III", 0, 0, len(samples)) + b"".join(struct.pack(">I", len(sample)) for sample in samples))
    stsc = box(b"stsc", struct.pack(">IIIII", 0, 1, 1, len(samples), 1))
    stts = box(b"stts", struct.pack(">IIII", 0, 1, len(samples), 100))
    stco = box(b"stco", struct.pack(">III", 0, 1, len(ftyp) + 8))
    hdlr = box(b"hdlr", b"\0" * 8 + (b"camm" if format == b"camm" else b"meta") + b"\0" * 13)
    mdhd = box(b"mdhd", struct.pack(">IIIIIHH", 0, 0, 0, 1000, 100, 0, 0))
    minf = box(b"minf", box(b"gmhd", box(b"gmin", bytes(16))) + box(b"stbl", stsd + stts + stsc + stsz + stco))
    trak = box(b"trak", box(b"tkhd", bytes(84)) + box(b"mdia", mdhd + hdlr + minf))
    return ftyp + box(b"mdat", data) + box(b"moov", box(b"mvhd", bytes(100)) + trak)


def cr3(tiff, exif):
    def directory(entries):
        result = b"II*\0\x08\0\0\0" + struct.pack("<H", len(entries))
        extra, at = b"", 8 + 2 + 12 * len(entries) + 4
        for number, type, count, value in entries:
            if len(value) > 4:
                result += struct.pack("<HHII", number, type, count, at + len(extra))
                extra += value
            else:
                result += struct.pack("<HHI", number, type, count) + value.ljust(4, b"\0")
        return result + b"\0\0\0\0" + extra
    gps = directory([(0, 1, 4, b"\2\3\0\0"), (1, 2, 2, b"N\0"), (2, 5, 3, struct.pack("<6I", 47, 1, 22, 1, 1234, 100)), (3, 2, 2, b"E\0"), (4, 5, 3, struct.pack("<6I", 8, 1, 32, 1, 5678, 100))])
    canon = bytes.fromhex("85c0b687820f11e08111f4ce462b6a48")
    return box(b"ftyp", b"crx \0\0\0\1crx isom") + box(b"moov", box(b"uuid", canon + box(b"CNCV", b"CanonCR3_001/00.09.00/00.00.00") + box(b"CMT1", directory([(0x10F, 2, 6, b"Canon\0"), (0x110, 2, 7, b"EOS R5\0")])) + box(b"CMT4", gps))) + box(b"mdat", os.urandom(500))


def main(folder):
    samples = Samples(folder)
    for part in [samples.pictures, samples.jpegs, samples.raws, samples.films, samples.unnamed, samples.matroska, samples.jpeg2000, samples.jxl, samples.others, samples.items]:
        try:
            part()
        except (RuntimeError, FileNotFoundError) as error:
            print(f"{part.__name__}: {error}", file=sys.stderr)
    print(len([name for name in os.listdir(folder) if not name.startswith(".")]), "files")


if __name__ == "__main__":
    main(sys.argv[1])
