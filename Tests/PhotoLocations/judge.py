#!/usr/bin/env python3
"""Checks cleaned photos: ExifTool and a search of the bytes find no location, and the pixels, pages and frames are unchanged.

usage: judge.py CLEANER FOLDER [MUTATIONS] [SEED]

CLEANER is the program photo-cleaner. FOLDER holds the originals (see samples.py). MUTATIONS is the number of damaged copies that are made,
cleaned and checked. Pixels are compared with Pillow, libheif, libjxl and ffmpeg if they are installed.
"""
import hashlib, io, json, os, random, re, shutil, struct, subprocess, sys, tempfile

LOCATION = re.compile(r"GPS|Latitude|Longitude|Location|City|State$|Country|Province|GeoTiff|ModelTie|MCC|Coordinates", re.I)
HARMLESS = re.compile(r"GPSVersionID|SubjectLocation|ItemLocation|WindowLocation|Opacity|Capacity|Velocity|GPSDateTime|ColorCoordinates|Tiff.*Chroma|FocusLocation|"
                      r"WorldTimeLocation|BatteryState|GeoTiffVersion", re.I)
NAMES = [b"Zurich", b"Bellevue", "Zurich".encode("utf-16-le")]
NUMBERS = [b"47.3700", b"47.3701", b"8.5491", b"47,22.20", b"8,32.94", "47.3700".encode("utf-16-le"),
           struct.pack(">IIII", 47, 1, 22, 1), struct.pack("<IIII", 47, 1, 22, 1), struct.pack("<d", 47.370094), struct.pack(">d", 47.370094),
           struct.pack(">i", 473700940), struct.pack("<i", 473700940)]
HELD_IS_FAILURE = (".jpg", ".png", ".webp", ".tif", ".heic", ".avif", ".dng", ".arw", ".nef", ".cr2", ".cr3", ".mp4", ".mov")

# Prefixes of the names of files without a location, in the other formats.
UNLOCATED = ("noise-", "none.", "comment-none.", "bare.jxl")

# The prefix of the files into which decoders write pictures.
SHOWN = os.path.join(tempfile.gettempdir(), f"judge-{os.getpid()}")
VERDICTS = {"clean": "ok", "unreadable": "UNKNOWN"}


def read(paths):
    """Returns the tags of each file. If ExifTool is too slow or its output is invalid, half lists isolate the damaged files, which are skipped."""
    try:
        result = subprocess.run(["exiftool", "-j", "-n", "-G1", "-a", "-ee", "-q", "-m", "-api", "LargeFileSupport=1", *paths],
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=20 + len(paths))
        return json.loads(result.stdout.decode(errors="replace") or "[]", strict=False)
    except (subprocess.TimeoutExpired, ValueError):
        half = len(paths) // 2
        return read(paths[:half]) + read(paths[half:]) if half else []


def exiftool(paths):
    found = {}
    for entry in read(paths) if paths else []:
        source = entry.pop("SourceFile")
        found[source] = {name: value for name, value in entry.items()
                         if LOCATION.search(name.split(":")[-1]) and not HARMLESS.search(name.split(":")[-1]) and str(value).strip(" 0\0.|") not in ("", "undef")}
    return found


def embedded(path):
    """Returns the files inside a DNG file, which ExifTool decompresses."""
    found = []
    for name in ("OriginalRawImage", "OriginalTHMImage", "PreviewImage") if path.endswith(".dng") else ():
        data = subprocess.run(["exiftool", "-b", "-q", "-m", f"-{name}", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
        if data:
            found.append(f"{SHOWN}-{len(found)}-{hash(path)}" + (".jpg" if data.startswith(b"\xff\xd8") else ".tif"))
            with open(found[-1], "wb") as file: file.write(data)
    return found


def pixels(path):
    """Returns a digest of the decoded picture or film, or None if nothing can be decoded."""
    name = os.path.basename(path)
    try:
        if name.endswith((".mp4", ".mov")):
            result = subprocess.run(["ffmpeg", "-v", "quiet", "-i", path, "-map", "0:v", "-f", "md5", "-"], stdout=subprocess.PIPE, timeout=60)
            return result.stdout or None
        if name.endswith((".heic", ".avif", ".jxl", ".cr3", ".orf", ".rw2", ".raf", ".bin")):
            if name.endswith(".jxl"):
                result = subprocess.run(["djxl", path, SHOWN + ".ppm", "--quiet"], stderr=subprocess.DEVNULL, timeout=60)
                return hashlib.md5(open(SHOWN + ".ppm", "rb").read()).digest() if result.returncode == 0 else None
            if name.endswith((".heic", ".avif")):
                result = subprocess.run(["heif-convert", path, SHOWN + ".png"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60)
                if result.returncode != 0: return None
                path = SHOWN + ".png"
            else:
                return None
        from PIL import Image, ImageSequence, ImageFile
        ImageFile.LOAD_TRUNCATED_IMAGES = True
        Image.MAX_IMAGE_PIXELS = 10_000_000
        digest = hashlib.md5()
        with Image.open(path) as image:
            for frame in ImageSequence.Iterator(image):
                digest.update(repr((frame.size, frame.mode)).encode() + frame.tobytes())
        return digest.digest()
    except Exception as error:
        return None


def clean(cleaner, paths):
    """Cleans the files and returns the verdict of each: "ok" with the blocks, "UNKNOWN" (format), "HELD" with the reason, or "CRASH"."""
    verdicts, rest = {}, list(paths)
    while rest:
        result = subprocess.run([cleaner, os.path.dirname(rest[0])], input=b"".join(path.encode() + b"\0" for path in rest), stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL)
        # A response consists of fields that end with a zero byte. An empty field ends the response.
        answers = [answer.decode(errors="replace").split("\0") for answer in result.stdout.split(b"\0\0")[:-1]]
        for path, answer in zip(rest, answers):
            verdicts[path] = f"{VERDICTS.get(answer[0], 'HELD')} {answer[1:]}"
        rest = rest[len(answers):]
        if rest:
            verdicts[rest[0]] = f"CRASH {result.returncode}"
            rest = rest[1:]
    return verdicts


def mutate(data, random):
    data = bytearray(data)
    kind = random.randrange(8)
    if kind == 0:
        return bytes(data[:random.randrange(1, len(data))])
    if kind == 1:
        start = random.randrange(len(data))
        del data[start:start + random.randrange(1, 40)]
    elif kind == 2:
        start = random.randrange(len(data))
        data[start:start] = bytes(random.randrange(256) for _ in range(random.randrange(1, 20)))
    elif kind == 3:
        start, size = random.randrange(len(data)), random.randrange(1, 200)
        data[start:start] = data[start:start + size]
    elif kind == 4:
        for _ in range(random.randrange(1, 4)):
            start = random.randrange(max(1, len(data) - 4))
            data[start:start + 4] = random.choice([b"\xff\xff\xff\xff", b"\0\0\0\0", b"\x7f\xff\xff\xff", b"\0\0\0\1", struct.pack("<I", random.randrange(len(data))), struct.pack(">I", random.randrange(len(data)))])
    else:
        # Most changes are in the first bytes, because the first bytes of a small file are mostly metadata.
        for _ in range(random.randrange(1, 12)):
            start = random.randrange(min(len(data), 4000)) if random.random() < 0.7 else random.randrange(len(data))
            data[start] = random.randrange(256) if random.random() < 0.5 else data[start] ^ (1 << random.randrange(8))
    return bytes(data)


def judge(cleaner, pairs, isWhole):
    """Cleans the copies, compares each copy with its original, and prints problems. `pairs` holds originals and copies."""
    failures, held = 0, 0
    verdicts = clean(cleaner, [copy for _, copy in pairs])
    sent = [copy for _, copy in pairs if verdicts[copy].startswith("ok")]
    locations = exiftool(sent)
    before = exiftool([original for original, _ in pairs])
    for original, copy in pairs:
        verdict, problems = verdicts[copy], []
        if verdict.startswith("CRASH"): problems.append(verdict)
        # A file of an unknown format can be sent unchanged. A file of an unknown format must therefore not have a location.
        if verdict.startswith("UNKNOWN") and before.get(original): problems.append(f"not known: {before[original]}")
        if not verdict.startswith("ok"):
            held += 1
            if isWhole and original.endswith(HELD_IS_FAILURE): problems.append(verdict)
            elif isWhole and os.path.basename(original).startswith(UNLOCATED) and verdict.startswith("HELD"): problems.append(verdict)
        if open(original, "rb").read() != open(copy, "rb").read() and not verdict.startswith("ok"): problems.append("changed, and held")
        if verdict.startswith("ok"):
            data, was = open(copy, "rb").read(), open(original, "rb").read()
            if len(data) != len(was): problems.append("another size")
            if locations.get(copy): problems.append(f"exiftool: {locations[copy]}")
            # After the cleaning, a damaged file must not contain the coordinates that ExifTool could read before.
            values = " ".join(str(value) for value in before.get(original, {}).values())
            wanted = NAMES + NUMBERS if isWhole else NUMBERS if "47.3700" in values and "8.5491" in values else []
            for number in wanted:
                if number in data: problems.append(f"search: {number}")
            if data != was and (isWhole or random.random() < 0.25):
                # If a picture is damaged, decoders can show uninitialized memory. If two decodings of one picture differ, the
                # pictures are not compared.
                shown = [pixels(path) for path in (original, copy, original, original)]
                # If a damaged block is overwritten, the picture can become decodable.
                if shown[0] and shown[0] != shown[1] and shown[0] == shown[2] == shown[3]: problems.append("other pixels")
            if isWhole:
                inside = [embedded(path) for path in (copy, original)]
                for found, kept in zip(*inside):
                    left = exiftool([found]).get(found)
                    if left: problems.append(f"exiftool: {left} in an embedded file")
                    if pixels(found) != pixels(kept): problems.append("other pixels in an embedded file")
                if len(inside[0]) != len(inside[1]): problems.append("an embedded file is lost")
                for path in sum(inside, []): os.unlink(path)
            if isWhole and before.get(original) and verdict == "ok []": problems.append(f"nothing found: {before[original]}")
        if problems:
            failures += 1
            kept = os.path.join("/tmp/judged", os.path.basename(copy))
            os.makedirs("/tmp/judged", exist_ok=True)
            shutil.copy(original, kept)
            print(f"{kept}: {'; '.join(problems)} ({verdict[:160]})", flush=True)
    return failures, held


def main(cleaner, folder, mutations=0, seed=1):
    originals = sorted(os.path.join(folder, name) for name in os.listdir(folder) if not name.startswith("."))
    work = tempfile.mkdtemp()
    try:
        pairs = [(path, shutil.copy(path, os.path.join(work, os.path.basename(path)))) for path in originals]
        failures, held = judge(cleaner, pairs, True)
        print(f"{len(pairs)} files: {failures} wrong, {held} held", flush=True)
        dice, done, heldMutants = random.Random(seed), 0, 0
        while done < mutations:
            pairs = []
            for number in range(min(200, mutations - done)):
                path = dice.choice(originals)
                data = mutate(open(path, "rb").read(), dice)
                names = [os.path.join(work, f"{kind}-{done + number}-{os.path.basename(path)}") for kind in ("was", "is")]
                for name in names: open(name, "wb").write(data)
                pairs.append(tuple(names))
            wrong, heldNow = judge(cleaner, pairs, False)
            failures, heldMutants, done = failures + wrong, heldMutants + heldNow, done + len(pairs)
            for names in pairs:
                for name in names: os.unlink(name)
        if mutations: print(f"{done} damaged files: {heldMutants} held; {failures} wrong in all", flush=True)
    finally:
        shutil.rmtree(work)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:5])))
