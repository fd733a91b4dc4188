"""What a behaviour is: a title, a way to try it for each contender that has one, and what the documentation of the others says."""

ORDER = ("systemd", "cron", "nohup", "workmanager", "stormy")
# By key, in the order of the table.
BEHAVIOURS = {}


class Behaviour:
    """`says`: what to cite where a contender does not hold it; `none`: of those that have no way to do it."""

    def __init__(self, key, group, title, says=None, none=None):
        self.key, self.group, self.title = key, group, title
        self.says, self.none, self.ways = says or {}, none or {}, {}
        BEHAVIOURS[key] = self

    def of(self, *names):
        """The function tries it for these; it returns what was seen, and raises No where it is not held."""
        def take(function):
            for name in names:
                self.ways[name] = function
            return function
        return take

    def rest(self, function):
        """The function tries it for all that are not named otherwise."""
        return self.of(*(name for name in ORDER if name not in self.ways and name not in self.none))(function)


def check():
    """Everybody is named once, and every citation is there."""
    from documentation import QUOTES
    for behaviour in BEHAVIOURS.values():
        for name in ORDER:
            assert (name in behaviour.ways) != (name in behaviour.none), f"{behaviour.key}: {name}"
        for key in [*behaviour.says.values(), *behaviour.none.values()]:
            assert key in QUOTES, f"{behaviour.key}: {key}"


def load():
    """Each of these files is a group or two."""
    import conditions  # noqa: F401
    import dying  # noqa: F401
    import notices  # noqa: F401
    import telling  # noqa: F401
    import times  # noqa: F401
    import transfers  # noqa: F401
    check()
    groups = ["Time", "What was missed", "Conditions", "Failing and dying", "Limits", "Transfers", "Notifications", "Telling", "Being tried, being ended"]
    return dict(sorted(BEHAVIOURS.items(), key=lambda item: groups.index(item[1].group)))
