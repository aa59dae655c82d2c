"""When a game day may run: its window in a time zone, its freezes, and its schedule."""

from __future__ import annotations

import re
from datetime import date
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import Annotated, Any, Literal, Self
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from chaos.core.duration import parse_duration
from chaos.core.field_types import DurationText, Model
from chaos.core.json_schema import AlsoAccepts, matching

Day = Literal["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
DAYS: tuple[Day, ...] = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MINUTES_OF_DAY = 24 * 60
_TIME = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])|24:00")
_DATE = re.compile(r"(?:([0-9]{4})-)?([0-9]{2})-([0-9]{2})")
_LEAP_YEAR = 2000
_OFFSET = re.compile(r"(?:utc|gmt)?([+-])([0-9]{1,2})(?::?([0-9]{2}))?")
_LOCAL = ("local", "localtime", "posixrules")
_ABBREVIATIONS = {
    "z": "UTC", "cest": "Europe/Berlin", "mez": "Europe/Berlin", "bst": "Europe/London",
    "eest": "Europe/Helsinki", "msk": "Europe/Moscow", "ist": "Asia/Kolkata", "jst": "Asia/Tokyo", "kst": "Asia/Seoul",
    "edt": "America/New_York", "et": "America/New_York", "cst": "America/Chicago", "cdt": "America/Chicago",
    "mdt": "America/Denver", "pst": "America/Los_Angeles", "pdt": "America/Los_Angeles", "pt": "America/Los_Angeles",
    "aest": "Australia/Sydney", "aedt": "Australia/Sydney", "nzst": "Pacific/Auckland", "nzdt": "Pacific/Auckland",
}  # fmt: skip
_MACROS = {
    "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * SUN",
    "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}  # fmt: skip
_CRON_ZONE = re.compile(r"(?:CRON_)?TZ=(\S+)\s+(.+)", re.IGNORECASE)
_WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_WEEKDAY_RANGE = re.compile(r"(SUN|MON|TUE|WED|THU|FRI|SAT|[0-7])-(SUN|MON|TUE|WED|THU|FRI|SAT|[0-7])(?!/)")


def _zone_name(text: str) -> str:
    zone_of(text)
    return text


def zone_of(name: str) -> ZoneInfo:
    """The time zone with this IANA name. Raises ValueError with the name that was probably meant.

    A name that only this machine knows, such as ``localtime``, is refused: elsewhere it is another zone or none.
    """
    if name not in _iana_names():
        raise ValueError(f"unknown time zone {name[:80]!r}; {_zone_hint(name[:80])}")
    return ZoneInfo(name)


@cache
def _iana_names() -> frozenset[str]:
    """The names in the IANA database. Factory stands for a zone that was never set."""
    text = (files("tzdata") / "zones").read_text(encoding="utf-8")
    return frozenset(text.split()) - {"Factory"}


def _zone_hint(name: str) -> str:
    plain = "_".join(name.split()).casefold().removeprefix("posix/").removeprefix("right/")
    names = sorted(_iana_names())
    wanted = _ABBREVIATIONS.get(plain, "") or _fixed_zone(plain)
    wanted = wanted or next((each for each in names if each.casefold() == plain), "")
    by_city = {each.casefold().rpartition("/")[2]: each for each in names if "/" in each}
    city = plain.rpartition("/")[2]
    if not wanted and plain not in _LOCAL:
        near = get_close_matches(plain, folded := {each.casefold(): each for each in names}, 1, 0.8)
        cities = [] if near else get_close_matches(city, by_city, 1, 0.75)
        wanted = by_city.get(city, "") or next((folded[each] for each in near), next((by_city[c] for c in cities), ""))
    return f"did you mean {wanted!r}?" if wanted else "write a name like Europe/Berlin or UTC"


def _fixed_zone(text: str) -> str:
    """The zone with an offset like utc+2 or +02:00, whose name has the opposite sign; "" for anything else."""
    match = _OFFSET.fullmatch(text)
    if not match or match[3] not in (None, "00"):
        return ""
    hours = int(match[2])
    name = f"Etc/GMT{'-' if match[1] == '+' else '+'}{hours}" if hours else "UTC"
    return name if name in _iana_names() else ""


def minutes_of(text: str) -> int:
    """Minutes since midnight of ``09:30``; ``24:00`` is the end of the day. Raises ValueError."""
    if not _TIME.fullmatch(text):
        raise ValueError(f"invalid time {text!r}; write it like 09:30, from 00:00 to 24:00")
    return int(text[:2]) * 60 + int(text[3:])


def _time_text(text: str) -> str:
    minutes_of(text)
    return text


def _date_text(text: str) -> str:
    match = _DATE.fullmatch(text)
    if not match:
        raise ValueError(f"invalid date {text!r}; write it like 2026-12-24, or 12-24 for every year")
    try:
        date(int(match[1]) if match[1] else _LEAP_YEAR, int(match[2]), int(match[3]))
    except ValueError:
        raise ValueError(f"the date {text} does not exist") from None
    return text


def _one_date(value: Any) -> Any:
    return {"on": value} if isinstance(value, str) else value


ZoneName = Annotated[
    str, AfterValidator(_zone_name), matching(r"[A-Za-z][A-Za-z0-9_+/-]*"), Field(examples=["Europe/Berlin"])
]
TimeText = Annotated[str, AfterValidator(_time_text), matching(_TIME.pattern), Field(examples=["09:30"])]
DateText = Annotated[str, AfterValidator(_date_text), matching(_DATE.pattern), Field(examples=["2026-12-24", "12-24"])]


class Hours(Model):
    """Hours of some weekdays, by the clock on the wall. Up to a time that is not later, they end on the next day."""

    days: list[Day] = Field(
        list(DAYS), min_length=1, description="The days on which the hours begin. By default, every day."
    )
    from_: TimeText = Field(alias="from", description="A local time, such as 09:00.")
    to: TimeText = Field(description="A local time, such as 16:30.")

    @model_validator(mode="after")
    def _not_empty(self) -> Self:
        if len(set(self.days)) < len(self.days):
            raise ValueError("a day is listed twice")
        if self.from_ == "24:00":
            raise ValueError("hours cannot begin at 24:00; write 00:00 of the next day")
        if self.from_ == self.to:
            raise ValueError(f"no hours from {self.from_} to {self.to}; write 00:00 to 24:00 for a whole day")
        return self

    @property
    def begin(self) -> int:
        """Minutes since midnight."""
        return minutes_of(self.from_)

    @property
    def end(self) -> int:
        """Minutes since midnight of the day of the beginning: over 24 hours for hours over midnight."""
        end = minutes_of(self.to)
        return end if end > self.begin else end + MINUTES_OF_DAY

    def __str__(self) -> str:
        days = "every day" if len(self.days) == len(DAYS) else ", ".join(self.days)
        return f"{days} {self.from_}-{self.to}"


class Freeze(Model):
    """Whole days, first and last included, on which nothing may run: once, or every year."""

    on: DateText | None = Field(None, description="A single day.")
    from_: DateText | None = Field(None, alias="from", description="The first day.")
    to: DateText | None = Field(None, description="The last day.")
    why: str = Field("", max_length=200, description="The reason. nodefall shows it when it refuses the day.")

    @model_validator(mode="after")
    def _shape(self) -> Self:
        if (self.on is None) == (self.from_ is None) or (self.from_ is None) != (self.to is None):
            raise ValueError("give either on, or from and to")
        if len(self.first) != len(self.last):
            raise ValueError("from and to must both have a year, or neither")
        if not self.is_yearly and self.first > self.last:
            raise ValueError(f"the freeze ends before it begins: {self.last} is earlier than {self.first}")
        return self

    @property
    def first(self) -> str:
        return self.on or self.from_ or ""

    @property
    def last(self) -> str:
        return self.on or self.to or ""

    @property
    def is_yearly(self) -> bool:
        return len(self.first) == len("12-24")

    def covers(self, day: date) -> bool:
        """Whether nothing may run on ``day``. A yearly February 29 exists only in leap years."""
        text = day.isoformat()
        text = text[5:] if self.is_yearly else text
        if self.first <= self.last:
            return self.first <= text <= self.last
        return text >= self.first or text <= self.last  # over the end of the year

    def __str__(self) -> str:
        days = self.first if self.on else f"{self.first} to {self.last}"
        return days + (", every year" if self.is_yearly else "") + (f" ({self.why})" if self.why else "")


_ONE_DATE = {"type": "string", **matching(_DATE.pattern).keywords}


class Window(Model):
    """The calendar of a game day. Without hours it is open day and night, except on days of ``not``."""

    zone: ZoneName = Field("UTC", description="The IANA name of the time zone.")
    open: list[Hours] = Field([], description="The hours in which the window is open.")
    not_: list[Annotated[Freeze, BeforeValidator(_one_date), AlsoAccepts(_ONE_DATE)]] = Field(
        [], alias="not", description="Freezes and holidays, as dates or ranges of dates in the time zone."
    )


def _cron_text(text: str) -> str:
    words = text.split()
    if words and words[0].startswith("@"):
        known = _MACROS.get(words[0].lower(), "") if len(words) == 1 else ""
        what = f"write {known!r}" if known else "write the times in 5 fields, such as '0 10 * * TUE'"
        raise ValueError(f"invalid schedule {text[:80]!r}; {what}")
    if match := _CRON_ZONE.fullmatch(text.strip()):
        what = f"write cron: {match[2]!r} here and zone: {match[1]} in the window"
        raise ValueError(f"invalid schedule {text[:200]!r}: a schedule has no zone; {what}")
    if len(text) > 200 or len(words) != 5:
        what = f"; leave out the seconds: {' '.join(words[1:])!r}" if len(words) == 6 and len(text) <= 200 else ""
        raise ValueError(f"invalid schedule {text[:80]!r}: expected 5 fields: minute hour day month weekday{what}")
    if "?" in words:
        raise ValueError(f"invalid schedule {text!r}: write * for ?: {' '.join(words).replace('?', '*')!r}")
    _check_weekdays(text, words)
    return text


def _check_weekdays(text: str, words: list[str]) -> None:
    """Raises ValueError for a range over the end of the week, such as SAT-SUN, with its days one by one."""
    for match in _WEEKDAY_RANGE.finditer(words[4].upper()):
        first, last = (int(day) if day.isdigit() else _WEEKDAYS.index(day) for day in match.groups())
        if first > last:
            days = ",".join(_WEEKDAYS[day % 7] for day in range(first, last + 8))
            written = " ".join([*words[:4], words[4].upper().replace(match[0], days)])
            raise ValueError(f"invalid schedule {text!r}: {match[0]} ends before it begins; write {written!r}")


class Schedule(Model):
    """When a day starts, in the zone of the window; a start outside the window is left out."""

    cron: Annotated[str, AfterValidator(_cron_text), matching(r"\s*\S+(?:\s+\S+){4}\s*")] = Field(
        description="The schedule in cron syntax. 0 10 * * TUE#1 is the first Tuesday of each month at 10:00."
    )
    missed: Literal["skip", "run"] = Field(
        "skip", description="run: the latest start that was missed is made up for when the window opens."
    )
    start_within: DurationText = Field(
        "10m", alias="startWithin", description="A start that is delayed by more than this counts as missed."
    )

    @property
    def grace(self) -> float:
        """``startWithin`` in seconds."""
        return parse_duration(self.start_within)
