"""Where things are: a plane with coordinates of one unit, or latitude and longitude on the WGS 84 ellipsoid."""

import numpy as np
from numpy.typing import ArrayLike

from placet.data import DataError
from placet.data.arrays import Floats
from placet.data.errors import one_of
from placet.kernels import tracking_distance

GEOMETRIES = ("plane", "geographic")
POLE = 85.0  # degrees; beyond it a tangent plane in latitude and longitude no longer serves
AXES = {"plane": ("x", "y"), "geographic": ("lat", "lon")}


def checked_points(points: ArrayLike, geometry: str, what: str) -> Floats:
    """Points (n, 2) as floats, columns (x, y) or (lat, lon), or a ``DataError`` that names the first bad one."""
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
    """Longitudes in [-180, 180]."""
    lon = np.asarray(lon, dtype=np.float64)
    return lon - 360.0 * np.round(lon / 360.0)


def distances(position: Floats, beacon: Floats, geometry: str, out: Floats | None = None) -> Floats:
    """Distance (n, beacons) of positions and beacons; on the ellipsoid within about 10 m per 1,000 km (fast, for
    particles).
    """
    out = np.empty((len(position), len(beacon))) if out is None else out
    kernel = tracking_distance.ellipsoid if geometry == "geographic" else tracking_distance.plane
    kernel(position, beacon, out)
    return out


def exact_distance(a: ArrayLike, b: ArrayLike, geometry: str) -> Floats:
    """Distance of point and point, row by row: Euclidean, or the geodesic (pyproj) in kilometers."""
    a, b = np.broadcast_arrays(np.array(a, dtype=np.float64, ndmin=2), np.array(b, dtype=np.float64, ndmin=2))
    if geometry == "plane":
        return np.hypot(a[:, 0] - b[:, 0], a[:, 1] - b[:, 1])
    from pyproj import Geod

    # As lists: pyproj takes an array of one element for a number, which NumPy no longer likes.
    meters = Geod(ellps="WGS84").inv(a[:, 1].tolist(), a[:, 0].tolist(), b[:, 1].tolist(), b[:, 0].tolist())[2]
    return np.asarray(meters) / 1000


def displacements(points: Floats, origin: Floats, geometry: str) -> Floats:
    """Points (..., 2) as seen from ``origin`` (2,) or (..., 2): differences, in kilometers north and east when
    geographic.
    """
    gap = points - origin
    if geometry == "plane":
        return gap
    gap[..., 1] = wrap_longitude(gap[..., 1])
    return gap * np.stack(tracking_distance.km_per_degree(origin[..., 0]), axis=-1)


def points_at(origin: Floats, displacement: Floats, geometry: str) -> Floats:
    """The inverse of ``displacements``: points (..., 2) at given displacements from ``origin`` (..., 2)."""
    if geometry == "plane":
        return origin + displacement
    points = origin + displacement / np.stack(tracking_distance.km_per_degree(origin[..., 0]), axis=-1)
    points[..., 1] = wrap_longitude(points[..., 1])
    return points


def weighted_mean(points: Floats, weight: Floats, geometry: str) -> Floats:
    """Mean position; longitudes are averaged as differences from the first, so that the date line does no harm."""
    if geometry == "plane":
        return np.einsum("n,na->a", weight, points)
    gap = points - points[0]
    gap[:, 1] = wrap_longitude(gap[:, 1])
    mean = points[0] + np.einsum("n,na->a", weight, gap)
    return np.array([mean[0], wrap_longitude(mean[1])])


def moments(points: Floats, weight: Floats, geometry: str) -> tuple[Floats, Floats]:
    """Weighted mean (2,) and covariance (2, 2) of positions; the covariance is in km^2 when geographic."""
    mean = weighted_mean(points, weight, geometry)
    gap = displacements(points, mean, geometry)
    # Not by BLAS, whose own threads would both slow this down and let the last digits depend on their number.
    return mean, np.einsum("na,nb->ab", gap * weight[:, None], gap)


def two_clouds(points: Floats, geometry: str) -> float:
    """How far equally weighted positions are two clouds: the share of the variance that a cut at the mean explains.

    The cut is across the best of four axes from the longest on.  2 / pi for a normal distribution, 3 / 4 for a
    uniform one, near 1 for two clouds apart, 0 for a single point.
    """
    weight = np.full(len(points), 1 / len(points))
    mean, covariance = moments(points, weight, geometry)
    long, short = np.linalg.eigh(covariance)[1].T[::-1]
    axes = np.column_stack([long, long + short, short, long - short])
    along = displacements(points, mean, geometry) @ axes
    above = along > 0
    right = above.mean(axis=0)
    moment = (along * above).mean(axis=0)  # the same on both sides of the mean: the cut explains m^2 / (p (1 - p))
    variance = ((covariance @ axes) * axes).sum(axis=0)
    cut = (variance > 0) & (right > 0) & (right < 1)
    split = moment[cut] ** 2 / (right[cut] * (1 - right[cut]) * variance[cut])
    return float(split.max(initial=0.0))
