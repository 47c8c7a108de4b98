"""The compiled loop that reads bids off a study, with what sites say of changes: the formulas of `signals`."""

from __future__ import annotations

import math

import numba
import numpy as np
import numpy.typing as npt
from numba.extending import register_jitable

from bowerbird.model.bid import saturating_gain, shape_value

F32 = npt.NDArray[np.float32]
F64 = npt.NDArray[np.float64]
I8 = npt.NDArray[np.int8]
I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]
U32 = npt.NDArray[np.uint32]

OFF, ON, NOT_OFFERED = 0, 1, -1
OF_STUDY, OF_HOST, OF_ALL, OTHER = 0, 1, 2, 3  # where a bid is from
_LINEAR, _FETCHED = 2, 1  # Shape, UrlState
_MOST_EXPONENT = 50.0
_SLOWEST = 1e-6

register_jitable(saturating_gain)
_value = numba.njit(cache=True, nogil=True)(shape_value)


@numba.njit(cache=True, nogil=True)
def effective_age(rate: float, age: float, evidence: float) -> float:
    """As `signals.effective_age_s`, of one page: log(1 + (exp(Delta·tau) - 1)·exp(evidence))/Delta."""
    x = rate * age
    if x <= 0.0:
        return age * math.exp(evidence)
    if x < 1e-12 and x * math.exp(evidence) < 1e-12:
        return age * math.exp(evidence)
    log_odds = (x if x > 30.0 else math.log(math.expm1(x))) + evidence
    return (log_odds + math.log1p(math.exp(-log_odds)) if log_odds > 0.0 else math.log1p(math.exp(log_odds))) / rate


@numba.njit(cache=True, nogil=True)
def weigh_signal(on: bool, age: float, recall: float, false_rate: float) -> float:
    """As `signals.signal_evidence`, of one page: log of the factor on the odds that it has changed."""
    if not on:
        return max(math.log1p(-recall), -_MOST_EXPONENT) if recall < 1.0 else -_MOST_EXPONENT
    false = -math.expm1(-false_rate * age)
    if recall <= 0.0:
        return 0.0
    if false <= 0.0:
        return _MOST_EXPONENT
    return min(math.log1p(recall * math.exp(-false_rate * age) / false), _MOST_EXPONENT)


@numba.njit(cache=True, nogil=True)
def pace_in_silence(rate: float, age: float, effective: float, due: float, recall: float, longest: float) -> float:
    """How fast the effective age grows, on average until it is due, while a signal stays off."""
    if effective >= due:
        return 1.0
    silent = longest
    if recall < 1.0:
        x = rate * due
        if x < 1e-12:
            found = due / (1.0 - recall)
        else:
            found = (x - math.log1p(-recall) if x > 30.0 else math.log1p(math.expm1(x) / (1.0 - recall))) / rate
        silent = min(silent, found)
    left = silent - age
    return min(max((due - effective) / left, _SLOWEST), 1.0) if left > 0.0 else 1.0


@numba.njit(cache=True, nogil=True)
def read_bids(
    now: float,
    shortest: float,
    rows: I64,
    pages: tuple[U8, U32, F64, U32],
    study: tuple[F32, F32, U8, F32, F32],
    hosts: tuple[F32, F32, F32],
    default_interval: float,
    longest: float,
    escalates: bool,
    amplitude: F32,
    rate: F32,
    since: F64,
    shape: U8,
    interval: F32,
    age: F64,
    signal: I8,
    basis: I8,
) -> None:
    """Bids of the fetched pages among `rows`; the others are marked OTHER and left alone.

    `pages` are state, host, last fetched and hint by row; `study` amplitude, rate, shape, interval and changes by row;
    `hosts` mean interval, recall and false rate by host. A page of age `longest` is due whatever its site says: until
    then silence holds its effective age back, but not below that share of its interval.
    """
    states, of_host, last_fetched, hints = pages
    amplitudes, rates, shapes, intervals, changes = study
    host_interval, recalls, false_rates = hosts
    for i in range(len(rows)):
        row = rows[i]
        signal[i] = NOT_OFFERED
        if states[row] != _FETCHED:
            basis[i] = OTHER
            continue
        last, host = last_fetched[row], of_host[row]
        old = max(now - last, 0.0)
        since[i] = last
        age[i] = old
        if row >= len(amplitudes) or math.isnan(amplitudes[row]):
            basis[i], interval[i] = OF_ALL, default_interval
            if host < len(host_interval) and not math.isnan(host_interval[host]):
                basis[i], interval[i] = OF_HOST, host_interval[host]
            amplitude[i], rate[i], shape[i] = 1.0, 1.0 / interval[i], _LINEAR
            continue
        basis[i] = OF_STUDY
        due, speed = float(intervals[row]), 1.0
        amplitude[i], rate[i], shape[i], interval[i] = amplitudes[row], rates[row], shapes[row], intervals[row]
        if 0 < hints[row] <= now and host < len(recalls):  # a date to come says nothing yet
            recall, delta = float(recalls[host]), float(changes[row])
            on = hints[row] > last
            signal[i] = ON if on else OFF
            found = effective_age(delta, old, weigh_signal(on, old, recall, float(false_rates[host])))
            age[i] = min(found, old) if old < shortest else found
            if not on:
                age[i] = max(age[i], due * (old / longest))
                speed = pace_in_silence(delta, old, age[i], due, recall, longest)
            since[i] = now - age[i] / speed
            rate[i] = rates[row] * speed
        if not escalates or age[i] < due:
            continue
        if age[i] / due > _value(shape[i], amplitude[i], rates[row] * age[i]) * (1.0 + 1e-5):
            # overdue, and worth no more by the method: from here on it grows with the age
            amplitude[i], rate[i], shape[i] = 1.0, 1.0 / due, _LINEAR
