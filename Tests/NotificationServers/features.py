"""The features that are tested on each notification server. A feature is a function of a scene. It raises `No` with the reason on failure."""
import html
import os
import pathlib
import struct
import subprocess
import time
import zlib

from bus import No, until
from scene import DEFAULT, DISMISS

FEATURES = {}


def feature(key, title, meaning):
    """Registers a feature. `title` is the title of the row in the table. `meaning` is one sentence for the documentation page."""
    def register(function):
        FEATURES[key] = (title, meaning, function)
        return function
    return register


def expect(is_held, complaint):
    if not is_held:
        raise No(complaint)


TITLE = "Title of storm"


# Features of the appearance.

@feature("shown", "Is shown", "Within 2 s after the app calls the method `add(_:)`, the server receives the notification, and the screen shows the notification.")
def shown(scene):
    begun = time.monotonic()
    scene.notify("storm", title=TITLE, body="A line of text")
    found = scene.wait_shown(TITLE)
    expect(found.answered_at - begun < 2, f"shown after {found.answered_at - begun:.1f} s")


@feature(
    "text", "Text as written",
    "If the title and the body contain the text `<b>A&\"B\"</b>`, the server shows exactly these characters. The agent escapes the text only for servers that interpret markup.")
def text(scene):
    words = '<b>A&"B"</b>'
    found = scene.show(title=words, body=words)
    expect(found.title == words, f"the title is {found.title}")
    escaped = words.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    wanted = escaped if "body-markup" in scene.desk.capabilities else words
    expect(found.body == wanted, f"the body is {found.body}")


@feature("subtitle", "Subtitle", "The server shows the subtitle of a notification as the first line of the text.")
def subtitle(scene):
    found = scene.show(subtitle="From the west", body="A line of text")
    expect(found.body == "From the west\nA line of text", f"the body is {found.body!r}")


@feature("picture", "Picture", "If a notification has attachments, the server shows the first attached picture.")
def picture(scene):
    path = scene.home / "picture.png"
    subprocess.run(["convert", "-size", "300x200", "xc:#ff00ff", str(path)], check=True)
    found = scene.show(picture=path)
    sent = [found.hints[name] for name in ("image-data", "image_data", "icon_data") if name in found.hints]
    expect(sent, "no pixels are sent")
    width, height = sent[0][0], sent[0][1]
    expect(max(width, height) <= 256 and sent[0][6]["bytes"] == height * sent[0][2], f"{width} x {height} pixels")
    expect(scene.desk.shows_picture(), "the server does not draw it")


@feature("icon", "No broken icon", "A notification has an icon of the desktop's icon theme, or no icon.")
def icon(scene):
    found = scene.show()
    names = [found.icon] + [found.hints[key] for key in ("image-path", "image_path") if key in found.hints]
    for name in filter(None, names):
        places = [pathlib.Path("/usr/share/icons"), pathlib.Path("/usr/share/pixmaps"), scene.home / ".local/share/icons"]
        expect(os.path.exists(name) or any(next(place.rglob(f"{name}.*"), None) for place in places if place.exists()),
               f"there is no icon {name}")


@feature("sound", "Sound", "If a notification has a sound, the agent requests this sound from the server. If a notification has no sound, the agent requests that the server plays no sound.")
def sound(scene):
    loud, silent = scene.show("loud", sound="bell"), scene.show("silent")
    expect(loud.hints.get("sound-name") == "bell" and not loud.hints.get("suppress-sound"), f"with a sound: {loud.hints}")
    expect("sound-name" not in silent.hints and silent.hints.get("suppress-sound") is True, f"without: {silent.hints}")


@feature(
    "urgency", "Urgency",
    "The agent sends a notification of the interruption level `passive` with the urgency \"low\", and of the level `critical` with the urgency \"critical\". Other notifications have the urgency \"normal\".")
def urgency(scene):
    got = [scene.show(f"level{level}", level=level).hints.get("urgency") for level in range(4)]
    expect(got == [0, 1, 1, 2], f"the urgencies are {got}")


@feature("stays", "Time-sensitive stays", "A notification of the interruption level `timeSensitive` stays on the screen longer than a notification of the level `active`.")
def stays(scene):
    quick, stay = scene.show("quick", level=1), scene.show("stay", level=2)
    if "actions" in scene.desk.capabilities:
        expect(stay.timeout == 0, f"the timeout is {stay.timeout}")
    if scene.desk.expires:
        deadline = time.monotonic() + scene.desk.expires + 4
        while time.monotonic() < deadline and quick.closed_at is None:
            scene.bus.read()
            time.sleep(0.1)
        time.sleep(1)
    scene.desk.stir()
    expect(scene.bus.standing(stay.title), "the server closes it all the same")
    expect(scene.desk.box(), "the server takes it off the screen, to its list")


# Features of the buttons.

@feature("buttons", "Buttons", "The server shows two buttons of a notification in the requested order, and the user can press the notification itself.")
def buttons(scene):
    found = scene.show()
    if "actions" not in scene.desk.capabilities:
        expect(found.keys == [], f"the buttons are {found.actions}")
        raise No("the server does not draw buttons")
    expect(found.keys == ["default", "accept", "later"], f"the buttons are {found.actions}")


@feature("press", "A button is reported", "If the user presses a button, the app is notified once.")
def press(scene):
    scene.show()
    scene.desk.press("accept")
    scene.wait_response("accept")


@feature("again", "Pressed twice", "If the user presses a button twice, the app is notified only once.")
def again(scene):
    scene.show()
    scene.desk.press_twice("later")
    scene.wait_response("later")


@feature("leaves", "Leaves when pressed", "If the user presses a button of a notification, the notification is removed from the screen.")
def leaves(scene):
    # A notification of this level stays on the screen until it is pressed or closed.
    scene.show(level=2)
    scene.desk.press("accept")
    scene.wait_response("accept")
    scene.wait_blank(3)
    expect(not scene.bus.standing(TITLE), "it stands there still")


@feature("body", "A press on the notification is reported", "If the user presses a notification but not one of its buttons, the app is notified.")
def body(scene):
    scene.show()
    scene.desk.press_body()
    scene.wait_response(DEFAULT)


@feature(
    "dismissal", "Dismissal is reported",
    "If the category of a notification has the option `customDismissAction` and the user closes the notification, the app is notified.")
def dismissal(scene):
    scene.show()
    scene.desk.close()
    scene.wait_response(DISMISS)


@feature("expiry", "Expiry is not a dismissal", "If the server removes a notification after some time, the app does not receive the dismissal action. Only the user can dismiss a notification.")
def expiry(scene):
    found = scene.show("storm", level=0)
    if scene.desk.expires is None:
        raise No("nothing expires there")
    deadline = time.monotonic() + scene.desk.expires + 4
    while time.monotonic() < deadline and found.closed_at is None:
        scene.bus.read()
        time.sleep(0.1)
    time.sleep(1)
    expect(not scene.responses(), f"the app hears {scene.responses()}")
    return None if found.closed_at else "(the server keeps an expired notification in a list)"


@feature(
    "reply", "Typed reply",
    "If a button has a text field, the app receives the text that the user typed. If a server has no text fields, such a button is not shown.")
def reply(scene):
    found = scene.show(category="typed")
    if "inline-reply" not in scene.desk.capabilities:
        wanted = ["default", "later"] if "actions" in scene.desk.capabilities else []
        expect(found.keys == wanted, f"the buttons are {found.actions}")
        raise No("the server has no text fields, so a button with a text field is not shown")
    expect(found.keys == ["default", "inline-reply", "later"], f"the buttons are {found.actions}")
    scene.desk.type_reply("on my way")
    until(scene.responses, 8, "the app hears nothing")
    expect(scene.responses() == [("storm", "reply", "on my way")], f"the app hears {scene.responses()}")


# Features of changes.

@feature("takeoff", "Removal by the app", "If the app calls the method `removeDeliveredNotifications`, the notification is removed from the screen.")
def takeoff(scene):
    scene.show(level=2)
    scene.run("take-off", "storm")
    scene.wait_standing(TITLE, 0)
    scene.wait_blank()
    expect(scene.listed() == ([], []), f"the app is told of {scene.listed()}")


@feature("replace", "Replaced in place", "A second notification with the same identifier replaces the first notification at its place on the screen.")
def replace(scene):
    first = scene.show()
    second = scene.show(title="Another title")
    # If a notification has left the screen, Plasma does not show a replacement of this notification. An alert therefore closes
    # the first notification before it shows the new notification.
    replaced = 0 if scene.desk.name == "plasma" else first.number
    expect(second.replaces == replaced, f"it asks to replace {second.replaces}, not {replaced}")
    expect(len(scene.bus.standing()) == 1, f"{len(scene.bus.standing())} stand there")


@feature("realert", "Replaced, alerts again", "If a notification replaces another notification, the agent requests the sound of the new notification.")
def realert(scene):
    scene.show(sound="bell")
    second = scene.show(sound="bell", body="Another line")
    expect(second.hints.get("sound-name") == "bell", f"its hints are {second.hints}")
    expect(scene.desk.is_shown(), "it is not on the screen")


class Export:
    """A running command that advances step by step."""

    def __init__(self, scene, steps):
        self.scene, self.pipe = scene, scene.home / "steps"
        os.mkfifo(self.pipe)
        self.process = subprocess.Popen(
            scene.command("export", "export.1", "queue", steps), env=scene.environment | {"PROVING_STEPS": str(self.pipe)},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.end = os.open(self.pipe, os.O_RDWR)

    def step(self):
        os.write(self.end, b"x")

    def close(self):
        os.close(self.end)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@feature("progress", "Progress", "If an app runs continued processing, one notification shows the progress, the title and the text of this work.")
def progress(scene):
    export = Export(scene, 4)
    try:
        until(lambda: scene.bus.standing("Exporting"), 8, "no progress is shown")
        export.step()
        export.step()

        def told():
            return [notice for notice in scene.bus.standing("Exporting")
                    if "2 of 4" in notice.body and ("50 %" in notice.body or notice.hints.get("value") == 50)]

        found = until(told, 8, "no progress is told")[-1]
        expect(found.body.count("50 %") < 2, f"the text says it twice: {found.body!r}")
        expect(len(scene.bus.standing("Exporting")) == 1, "it stands there more than once")
        expect("actions" not in scene.desk.capabilities or found.keys == ["cancel"], f"the buttons are {found.actions}")
        time.sleep(scene.desk.drawing)
        scene.snap()
    finally:
        for _ in range(2):
            export.step()
        export.close()


@feature("progress-ends", "Progress leaves", "When continued processing ends, the notification with the progress is removed from the screen.")
def progress_ends(scene):
    export = Export(scene, 2)
    try:
        until(lambda: scene.bus.standing("Exporting"), 8, "no progress is shown")
        time.sleep(scene.desk.drawing)
    finally:
        for _ in range(2):
            export.step()
        export.close()
    scene.wait_standing("Exporting", 0)
    scene.wait_blank()


# Features of text from sources that are not trusted.

@feature("controls", "Control characters", "Control characters and a right-to-left override in the text of a notification do not change how the server shows the text.")
def controls(scene):
    scene.notify("storm", title="a\x01\x1b[31mb\u202egnp.exe", body="c\x07\x08d\u202e\u2066e\nf")
    found = until(lambda: [notice for notice in scene.calls() if notice.answered_at], 8, "it is not shown")[-1]
    agent = scene.agent()
    expect(not any(ord(letter) < 32 and letter not in "\n\t" for letter in found.title + found.body), f"sent are {found.title!r}, {found.body!r}")
    until(scene.desk.is_shown, 4, "nothing appears on the screen")
    time.sleep(scene.desk.drawing)
    scene.snap()
    scene.alive(agent)


@feature("long", "A body of 1 MB", "If the text of a notification has 1 MB, the server shows a part of the text. The agent and the server continue to run, and the server shows the next notification.")
def long(scene):
    # The text is too long for an argument of a command. The text is therefore written to the ledger while no agent is running.
    scene.run("notify", "storm", f"title={TITLE}", "body=LONG", PROVING_GROUND_NO_AGENT="1")
    (content,) = scene.rows("SELECT content FROM notification WHERE identifier = 'storm'")[0]
    words = "Thunder & lightning, <b>very</b> frightening. "
    scene.rows("UPDATE notification SET content = ? WHERE identifier = 'storm'",
               content.replace("LONG", (words * (1_000_000 // len(words) + 1))[:1_000_000]))
    scene.start_agent()
    agent = until(scene.agent, 8, "no agent starts")
    found = scene.wait_shown(TITLE, seconds=20)
    time.sleep(scene.desk.drawing)
    scene.snap()
    scene.alive(agent)
    scene.run("take-off", "storm")
    scene.wait_standing(TITLE, 0)
    scene.show("next")
    scene.alive(agent)
    sent = html.unescape(found.body) if "body-markup" in scene.desk.capabilities else found.body
    expect(len(sent) < 5000, f"the server is sent {len(sent)} characters")
    expect(sent.endswith("…"), f"it ends with {sent[-20:]!r}")


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


@feature(
    "attachments", "Bad attachments",
    "The library refuses a text file and a file of 50 MB as attachments. An incomplete picture and a picture with a false size are not shown. The agent continues to run after each of these four attachments.")
def attachments(scene):
    head = b"\x89PNG\r\n\x1a\n"
    files = {"text.png": b"not a picture", "large.png": head, "broken.png": head + b"x" * 5000,
             "huge.png": head + chunk(b"IHDR", struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(b"\0" * 9999))}
    for name, data in files.items():
        (scene.home / name).write_bytes(data)
    os.truncate(scene.home / "large.png", 50_000_000)
    scene.show("before")
    agent = scene.agent()
    for name in ("text.png", "large.png"):
        done = scene.run("notify", name, f"picture={scene.home}/{name}", check=False)
        expect(done.returncode == 70, f"{name} is taken: {done.returncode} {done.stdout}")
    for name in ("broken.png", "huge.png"):
        found = scene.show(name, picture=scene.home / name)
        expect(not any("image" in hint or "icon_data" == hint for hint in found.hints), f"{name}: {found.hints}")
    scene.alive(agent)


# Features of restarts.

def live_buttons(scene, settle=1.5):
    """Checks that exactly one notification is on the screen, and that the app receives a press of its button once."""
    if not scene.desk.spots:
        # On this desk, notifications leave the screen after a few seconds and cannot be pressed.
        time.sleep(settle)
        shown = {notice.number for notice in scene.calls(TITLE) if notice.epoch == scene.bus.epoch and notice.number is not None}
        return expect(len(shown) == 1, f"{len(shown)} were shown instead of 1")
    scene.wait_standing(TITLE, 1, settle=settle)
    until(scene.desk.is_shown, 4, "nothing appears on the screen")
    time.sleep(scene.desk.drawing)
    scene.desk.press("accept")
    scene.wait_response("accept")


@feature(
    "server-restart", "Server restarts",
    "If the server is killed and started again, the notification is shown again once. This notification makes no sound, and its buttons work.")
def server_restart(scene):
    scene.show(sound="bell", level=2)
    scene.desk.restart_server()
    until(lambda: [notice for notice in scene.calls(TITLE)[1:] if notice.answered_at], 8, "it is not shown again")
    found = scene.calls(TITLE)[-1]
    expect("sound-name" not in found.hints, "it sounds again")
    live_buttons(scene)


@feature(
    "both-restart", "Agent and server restart",
    "If the agent and the server are killed and started again, the notification is shown again once, and its buttons work.")
def both_restart(scene):
    scene.show(level=2)
    scene.kill_agent()
    scene.desk.restart_server()
    scene.start_agent()
    live_buttons(scene)


@feature(
    "agent-killed", "Agent is killed",
    "If the agent is killed while a notification is on the screen, the notification is not shown twice. If the user then presses a button of this notification, the next agent notifies the app.")
def agent_killed(scene):
    scene.show(level=2)
    scene.kill_agent()
    scene.start_agent()
    live_buttons(scene)


@feature("frozen", "Server freezes", "If an app adds a notification while the server does not respond, the notification is shown once when the server responds again. The server does not respond for 5 s in this test.")
def frozen(scene):
    scene.start_agent()
    until(scene.agent, 8, "no agent starts")
    time.sleep(0.5)
    scene.desk.freeze()
    try:
        scene.notify("storm", title=TITLE, body="A line of text", level=2)
        time.sleep(5)
    finally:
        scene.desk.thaw()
    live_buttons(scene, settle=3)


@feature("absent", "Server comes later", "If an app adds a notification while no server runs, the notification is shown once when a server starts.")
def absent(scene):
    scene.desk.kill_server()
    scene.notify("storm", title=TITLE, body="A line of text", level=2)
    time.sleep(1)
    listed = scene.listed()
    expect(listed == ([], ["storm"]), f"without a server the app is told of {listed}")
    scene.desk.start_server()
    live_buttons(scene)


@feature(
    "bus-restart", "Bus restarts",
    "If the session bus and the server are killed and started again, the notification is shown again once, and its buttons work. The new bus has the address of the old bus.")
def bus_restart(scene):
    scene.show(level=2)
    scene.desk.restart_bus()
    note = None
    try:
        scene.wait_standing(TITLE, 1, seconds=8)
    except No:
        scene.start_agent()
        note = "(after the app's next command)"
    live_buttons(scene)
    return note


@feature(
    "burst", "Thirty at once",
    "If an app adds thirty notifications at the same time, some notifications are shown, and one summary replaces the others. While the app adds the notifications, each command of the app ends within 1 s. The app can remove all thirty notifications from the screen.")
def burst(scene):
    words, same = ["notify", "storm", f"title={TITLE}", "body=A line of text", "count=30", "level=2"], scene.desk.same_words
    if same:
        # Thirty notifications with different titles are queued while no agent is running.
        scene.run(*words, PROVING_GROUND_NO_AGENT="1")
        scene.rows("UPDATE notification SET content = replace(content, ?, ? || ' ' || identifier) WHERE identifier LIKE 'storm-%'", TITLE, TITLE)
        words = ["notify", "later", "seconds=3600"]
    else:
        scene.start_agent()
    adding = subprocess.Popen(scene.command(*words), env=scene.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)

    def shown():
        return sum(notice.title.startswith(TITLE) and notice.error is None and notice.answered_at is not None for notice in scene.calls())

    def gathered():
        told = [notice.title.split() for notice in scene.calls() if " notifications of " in notice.title and notice.answered_at]
        return int(told[-1][0]) if told else 0

    slowest, deadline = 0, time.monotonic() + 20
    while time.monotonic() < deadline and shown() + gathered() < 30:
        begun = time.monotonic()
        scene.run("background", "status")
        slowest = max(slowest, time.monotonic() - begun)
    adding.wait()
    time.sleep(scene.desk.drawing)
    scene.snap()
    expect(slowest < 1, f"a command was answered after {slowest:.1f} s")
    expect(shown() + gathered() == 30, f"{shown()} are shown, and a summary tells of {gathered()}")
    expect(shown() <= 10, f"{shown()} are shown by themselves")
    scene.run("take-off", *(f"storm-{number}" for number in range(1, 31)))
    until(lambda: not scene.bus.standing(), 15, "taken back, some stand there")
    scene.wait_blank()
    return f"({same})" if same else None


@feature("quit", "Quit withdraws", "The command `background quit` removes all notifications of the app from the screen.")
def quit_withdraws(scene):
    scene.show("first", level=2)
    scene.show(level=2)
    scene.quit()
    scene.wait_standing(TITLE, 0)
    scene.wait_blank()


@feature(
    "closed-stays-closed", "Closed stays closed",
    "If the user closed a notification, the notification is not shown again after a restart of the server or the agent.")
def closed_stays_closed(scene):
    scene.show(level=2)
    scene.desk.close()
    scene.wait_standing(TITLE, 0)
    time.sleep(1)
    before = len(scene.calls(TITLE))
    scene.desk.restart_server()
    time.sleep(3)
    expect(len(scene.calls(TITLE)) == before, "it is shown again")
    # If the agent has no more work, it has already exited.
    if scene.agent():
        scene.kill_agent()
    scene.start_agent()
    time.sleep(3)
    expect(len(scene.calls(TITLE)) == before, "the next agent shows it again")


# Features of the desk without a server.

@feature(
    "waits", "Waits without a server",
    "If no server runs, a notification waits, and the app finds the notification in the list of pending notifications. Commands of the app work, and the command `quit` ends the agent.")
def waits(scene):
    scene.notify("storm", title=TITLE, body="A line of text")
    time.sleep(1)
    expect(scene.listed() == ([], ["storm"]), f"the app is told of {scene.listed()}")
    begun = time.monotonic()
    agent = scene.agent()
    expect(agent, "no agent runs")
    expect(time.monotonic() - begun < 1, "a command waits")
    scene.run("take-off", "storm")
    expect(scene.listed() == ([], []), f"taken back, the app is told of {scene.listed()}")
    scene.quit()
    expect(scene.home_processes() == [], "something of it runs on")
