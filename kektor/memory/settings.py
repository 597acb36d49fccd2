"""What the settings of an index may be: checked on their way to the log, whatever door or command they come from."""

import math
from collections.abc import Mapping

from kektor.engine.records import IndexSettings, Layer, Policy
from kektor.errors import Invalid
from kektor.memory.limits import LIMITS, check_layer, check_name, check_text
from kektor.text import languages

__all__ = ["check_settings"]

_CHOICES = {"metric": ("cosine", "l2", "dot"), "precision": ("f32",)}
_WHOLE = {"dim": (1, LIMITS["dim"]), "m": (2, 128), "ef_construction": (8, 2000)}
_TEXT = {"k1": (0, 10), "b": (0, 1)}
_POLICY = {
    "evidence": ("off", "record", "require"),
    "agent_writes": ("accept", "propose"),
    "write": ("open", "gated", "frozen"),
}
_RETENTION_MODES = ("archive", "retract", "erase")


def check_settings(settings: IndexSettings) -> IndexSettings:
    """The settings, each a value that every structure of an index can be made with; Invalid names the one at fault."""
    check_name(settings.name, field="name")
    for name, choices in _CHOICES.items():
        _one_of(getattr(settings, name), choices, name)
    for name, (low, high) in _WHOLE.items():
        _within(getattr(settings, name), low, high, name)
    _one_of(settings.text.language, languages(), "text.language")
    for name, (low, high) in _TEXT.items():
        _within(getattr(settings.text, name), low, high, f"text.{name}")
    _check_layers(settings.layers)
    _check_policy(settings.policy, settings.layers)
    return settings


def _check_policy(policy: Policy, layers: Mapping[str, Layer]) -> None:
    """Every field is one of its values; what concerns a layer names one that the index has."""
    for name, choices in _POLICY.items():
        _one_of(getattr(policy, name), choices, f"policy.{name}")
    for number, entry in enumerate(policy.single_valued or ()):
        where = f"policy.single_valued[{number}]"
        if not entry.strip() or len(check_text(entry, field=where)) > 100:
            raise Invalid(
                "an entry of single_valued is a predicate such as 'lives in' or a noun such as 'port', "
                "of 1 to 100 characters",
                field=where,
            )
    for layer, kept in policy.retention.items():
        where = f"policy.retention.{layer}"
        if layer not in layers:
            raise Invalid(f"there is no layer {layer!r}; there are {', '.join(sorted(layers))}", field=where)
        if not 0 < kept.days <= 36_500:
            raise Invalid(f"days must be above 0 and at most 36,500, not {kept.days}", field=f"{where}.days")
        _one_of(kept.mode, _RETENTION_MODES, f"{where}.mode")


def _check_layers(layers: Mapping[str, Layer]) -> None:
    if len(layers) > LIMITS["layers"]:
        raise Invalid(f"{len(layers):,} layers; the limit is {LIMITS['layers']:,}", field="layers")
    for name, layer in layers.items():
        check_layer(name, field="layers")
        where = f"layers.{name}"
        half_life = layer.half_life_days
        if half_life is not None and not 0 < half_life <= 36_500:
            raise Invalid(
                f"half_life_days must be above 0 and at most 36,500, not {half_life}", field=f"{where}.half_life_days"
            )
        _one_of(layer.decay, ("exponential",), f"{where}.decay")
        _within(layer.weight, 0, 100, f"{where}.weight")


def _within(value: float, low: float, high: float, field: str) -> None:
    if not math.isfinite(value) or not low <= value <= high:
        raise Invalid(f"{field} must be {low:,} to {high:,}, not {value}", field=field)


def _one_of(value: str, choices: tuple[str, ...], field: str) -> None:
    if value not in choices:
        raise Invalid(f"{field} must be {' or '.join(map(repr, choices))}, not {value!r}", field=field)
