"""Geometry: a plane with both coordinates in the same unit, or latitude and longitude on the WGS 84 ellipsoid."""

import numpy as np
from numpy.typing import ArrayLike

from placet.data import DataError
from placet.data.arrays import Floats
from placet.data.errors import one_of
from placet.kernels.tracking import beacon_distance

GEOMETRIES = ("plane", "geographic")
POLE = 85.0  # degrees; beyond it a tangent plane in latitude and longitude is too inaccurate
AXES = {"plane": ("x", "y"), "geographic": ("lat", "lon")}


def checked_points(points: ArrayLike, geometry: str, what: str) -> Floats:
    """Points (n, 2) as floats, columns (x, y) or (lat, lon); the first invalid one raises a ``DataError``."""
    one_of(geometry, GEOMETRIES, "geometry")
    points = np.array(points, dtype=np.float64, ndmin=2)
    if points.ndim != 2 or points.shape[1] != 2:
        raise DataError(f"{what}: positions have shape {points.shape}; two columns, {AXES[geometry]}, are needed")
    bad = ~np.isfinite(points).all(axis=1)
    if bad.any():
        raise DataError(
            f"{what} {np.argmax(bad)}: position {tuple(points[np.argmax(bad)])} is not finite ({bad.sum()} such)"
        )
    if geometry == "geographic":
        bad = np.abs(points[:, 0]) > 90
        if bad.any():
            lat = points[np.argmax(bad), 0]
            raise DataError(
                f"{what} {np.argmax(bad)}: latitude {lat:g} is outside -90..90; the order is latitude, longitude"
            )
        bad = np.abs(points[:, 0]) > POLE
        if bad.any():
            lat = points[np.argmax(bad), 0]
            raise DataError(
                f"{what} {np.argmax(bad)}: latitude {lat:g} is beyond {POLE:g}; "
                "project to a polar plane and use geometry='plane'"
            )
        points[:, 1] = wrap_longitude(points[:, 1])
    return points


def wrap_longitude(lon: ArrayLike) -> Floats:
    """Wrap longitudes to [-180, 180]."""
    lon = np.asarray(lon, dtype=np.float64)
    return lon - 360.0 * np.round(lon / 360.0)


def distances(position: Floats, beacon: Floats, geometry: str, out: Floats | None = None) -> Floats:
    """Distances (n, beacons) between positions and beacons.

    On the ellipsoid a fast approximation for particles, accurate to about 10 m per 1,000 km.
    """
    out = np.empty((len(position), len(beacon))) if out is None else out
    kernel = beacon_distance.ellipsoid if geometry == "geographic" else beacon_distance.plane
    kernel(position, beacon, out)
    return out


def exact_distance(a: ArrayLike, b: ArrayLike, geometry: str) -> Floats:
    """Rowwise distance between points: Euclidean, or geodesic (pyproj) in kilometers."""
    a, b = np.broadcast_arrays(np.array(a, dtype=np.float64, ndmin=2), np.array(b, dtype=np.float64, ndmin=2))
    if geometry == "plane":
        return np.hypot(a[:, 0] - b[:, 0], a[:, 1] - b[:, 1])
    from pyproj import Geod

    # As lists: pyproj converts arrays of one element to scalars, which NumPy has deprecated.
    meters = Geod(ellps="WGS84").inv(a[:, 1].tolist(), a[:, 0].tolist(), b[:, 1].tolist(), b[:, 0].tolist())[2]
    return np.asarray(meters) / 1000


def displacements(points: Floats, origin: Floats, geometry: str) -> Floats:
    """Differences of points (..., 2) from ``origin`` (2,) or (..., 2), in kilometers north and east if geographic."""
    gap = points - origin
    if geometry == "plane":
        return gap
    gap[..., 1] = wrap_longitude(gap[..., 1])
    return gap * np.stack(beacon_distance.km_per_degree(origin[..., 0]), axis=-1)


def points_at(origin: Floats, displacement: Floats, geometry: str) -> Floats:
    """The inverse of ``displacements``: points (..., 2) at given displacements from ``origin`` (..., 2)."""
    if geometry == "plane":
        return origin + displacement
    points = origin + displacement / np.stack(beacon_distance.km_per_degree(origin[..., 0]), axis=-1)
    points[..., 1] = wrap_longitude(points[..., 1])
    return points


def weighted_mean(points: Floats, weight: Floats, geometry: str) -> Floats:
    """Mean position; longitudes are averaged as differences from the first, to be safe at the date line."""
    if geometry == "plane":
        return np.einsum("n,na->a", weight, points)
    gap = points - points[0]
    gap[:, 1] = wrap_longitude(gap[:, 1])
    mean = points[0] + np.einsum("n,na->a", weight, gap)
    return np.array([mean[0], wrap_longitude(mean[1])])


def moments(points: Floats, weight: Floats, geometry: str) -> tuple[Floats, Floats]:
    """Weighted mean (2,) and covariance (2, 2) of positions; the covariance is in km^2 if geographic."""
    mean = weighted_mean(points, weight, geometry)
    gap = displacements(points, mean, geometry)
    # Not by BLAS, whose threads would slow this down and make the last digits depend on their number.
    return mean, np.einsum("na,nb->ab", gap * weight[:, None], gap)


def two_clouds(points: Floats, geometry: str) -> float:
    """Bimodality of equally weighted positions: the share of the variance explained by a split at the mean.

    The split is across the best of four axes, the principal axes and their diagonals.  2 / pi for a normal
    distribution, 3 / 4 for a uniform one, near 1 for two separate clouds, 0 for a single point.
    """
    weight = np.full(len(points), 1 / len(points))
    mean, covariance = moments(points, weight, geometry)
    long, short = np.linalg.eigh(covariance)[1].T[::-1]
    axes = np.column_stack([long, long + short, short, long - short])
    along = displacements(points, mean, geometry) @ axes
    above = along > 0
    right = above.mean(axis=0)
    moment = (along * above).mean(axis=0)  # equal on both sides of the mean: the split explains m^2 / (p (1 - p))
    variance = ((covariance @ axes) * axes).sum(axis=0)
    cut = (variance > 0) & (right > 0) & (right < 1)
    split = moment[cut] ** 2 / (right[cut] * (1 - right[cut]) * variance[cut])
    return float(split.max(initial=0.0))
