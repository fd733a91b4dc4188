"""Defines a behaviour: a title, a trial for each contender that can do it, and citations of documentation for the others."""

ORDER = ("systemd", "cron", "nohup", "workmanager", "stormy")
# The behaviours by their keys, in the order of the table.
BEHAVIOURS = {}


class Behaviour:
    """One behaviour. `says` has the citations for contenders that do not hold it, and `none` for contenders that cannot do it."""

    def __init__(self, key, group, title, says=None, none=None):
        self.key, self.group, self.title = key, group, title
        self.says, self.none, self.ways = says or {}, none or {}, {}
        BEHAVIOURS[key] = self

    def of(self, *names):
        """Registers the trial for these contenders. The trial returns an observation, or raises No if it is not held."""
        def take(function):
            for name in names:
                self.ways[name] = function
            return function
        return take

    def rest(self, function):
        """Registers the trial for all contenders that are not named otherwise."""
        return self.of(*(name for name in ORDER if name not in self.ways and name not in self.none))(function)


def check():
    """Checks that each contender is named once, and that each citation exists."""
    from documentation import QUOTES
    for behaviour in BEHAVIOURS.values():
        for name in ORDER:
            assert (name in behaviour.ways) != (name in behaviour.none), f"{behaviour.key}: {name}"
        for key in [*behaviour.says.values(), *behaviour.none.values()]:
            assert key in QUOTES, f"{behaviour.key}: {key}"


def load():
    """Loads the behaviours. Each of these files has one or two groups."""
    import conditions  # noqa: F401
    import dying  # noqa: F401
    import notices  # noqa: F401
    import telling  # noqa: F401
    import times  # noqa: F401
    import transfers  # noqa: F401
    check()
    groups = ["Time", "Missed runs", "Conditions", "Failures and crashes", "Limits", "Transfers", "Notifications", "Reports", "Manual runs and the end"]
    return dict(sorted(BEHAVIOURS.items(), key=lambda item: groups.index(item[1].group)))
